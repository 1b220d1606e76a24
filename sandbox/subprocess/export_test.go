package subprocess

// RaceBuild is for tests that the race detector has no memory for.
const RaceBuild = raceBuild
