package secret

import (
	"errors"
	"os"
	"strconv"

	ss "github.com/zalando/go-keyring/secret_service"
)

// openable says whether there is a keyring and whether it is open, before it is asked for
// anything: one that is locked would show somebody a window, and wait.
func openable() error {
	if !session() {
		return errors.New("the daemon has no session, and so no keyring (DBUS_SESSION_BUS_ADDRESS is not set); run 'writ serve' in the session of its user, or keep this in a file")
	}
	service, err := ss.NewSecretService()
	if err != nil {
		return fault{"the daemon does not reach the session's bus, and so no keyring; run 'writ serve' in the session of its user, or keep this in a file", err}
	}
	locked, err := service.GetLoginCollection().GetProperty("org.freedesktop.Secret.Collection.Locked")
	if err != nil {
		return fault{"nobody keeps a keyring in the daemon's session; start one, such as gnome-keyring-daemon, or keep this in a file", err}
	}
	if is, ok := locked.Value().(bool); is || !ok {
		return errors.New("the keyring is locked; unlock it, by logging in to the desktop or with gnome-keyring-daemon --unlock, and try again")
	}
	return nil
}

// session says whether there is a bus to find. Where there is none, the library would
// start one.
func session() bool {
	if at := os.Getenv("DBUS_SESSION_BUS_ADDRESS"); at != "" && at != "autolaunch:" {
		return true
	}
	for _, name := range []string{"bus", "dbus-session"} {
		if _, err := os.Stat("/run/user/" + strconv.Itoa(os.Getuid()) + "/" + name); err == nil {
			return true
		}
	}
	return false
}
