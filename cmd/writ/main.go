// Command writ stands between AI agents and the tools they call. It is what people type;
// what needs the engine it hands over to writd, so that the rest begins fast.
package main

import "github.com/writ-run/writ/cli"

func main() { cli.Main(cli.Program{}) }
