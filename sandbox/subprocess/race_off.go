//go:build !race

package subprocess

const raceBuild = false
