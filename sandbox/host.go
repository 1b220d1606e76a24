package sandbox

// Offline are variables that tell package managers that there is no network, so that
// they take what is cached or say at once what is missing, instead of trying again for a
// minute.
func Offline() map[string]string {
	return map[string]string{
		"GOPROXY": "off", "GOTOOLCHAIN": "local",
		"npm_config_offline": "true", "npm_config_update_notifier": "false", "npm_config_logs_max": "0",
		"PIP_RETRIES": "0", "PIP_DISABLE_PIP_VERSION_CHECK": "1", "UV_OFFLINE": "1",
		"CARGO_NET_OFFLINE": "true",
	}
}

// Programs are the directories in which every box finds programs.
func Programs() []string { return []string{"/usr", "/bin", "/sbin", "/lib", "/lib64"} }
