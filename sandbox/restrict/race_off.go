//go:build !race

package restrict

// RaceBuild: there is no race detector.
const RaceBuild = false
