package protect

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// A lock says to other processes which protect the same directory that placeholders in it
// are needed: who needs some has it shared, and who removes some has it alone. It is on a
// file where every process of the host finds it and no box does, and ends with its process.
type lock struct {
	key   [2]uint64
	of    string // the path of the directory, as it was
	path  string
	fd    int
	holds int // placeholders of this process

	named string // one of those, a socket; empty: none was made
	is    id
}

// lockHome is where locks are: whoever may write there can keep writ from running, and do
// no more.
var lockHome = sync.OnceValue(func() string {
	// The same for every user, so not by what this one may do.
	if info, err := os.Stat("/dev/shm"); err == nil && info.IsDir() && info.Mode()&(os.ModeSticky|0o777) == os.ModeSticky|0o777 {
		return "/dev/shm"
	}
	return "/tmp"
})

// sweepLocks removes the files of locks that a killed process has left; some of them, since
// this is done whenever one starts.
func sweepLocks() {
	all, _ := filepath.Glob(lockHome() + "/writ-*.lock") // no pattern is bad that is written here
	for _, path := range all[:min(100, len(all))] {
		if l, err := tryLock([2]uint64{}, path, unix.F_WRLCK); err == nil {
			l.end()
		}
	}
}

func lockOf(dir int) (key [2]uint64, path string, err error) {
	is, err := statFD(dir)
	return is.place(), lockPath(is.place()), err
}

// lockName is the file of a lock, by its directory.
const lockName = "writ-%x-%x.lock"

func lockPath(key [2]uint64) string {
	return lockHome() + "/" + fmt.Sprintf(lockName, key[0], key[1])
}

// share takes the lock of a directory, or counts one more placeholder for it. It is called
// with the Finder's lock held.
func (f *Finder) share(dir int) (*lock, error) {
	key, path, err := lockOf(dir)
	if err != nil {
		return nil, err
	}
	l := f.locks[key]
	for end := time.Now().Add(2 * time.Second); l == nil; {
		l, err = tryLock(key, path, unix.F_RDLCK)
		if err != nil && (!errors.Is(err, unix.EAGAIN) || time.Now().After(end)) {
			return nil, fmt.Errorf("lock %s: %w; another process of writ holds it, or remove the file", path, err)
		}
		if err != nil {
			time.Sleep(time.Millisecond) // somebody removes placeholders, which is soon done
		}
	}
	if f.locks[key] == nil {
		l.says(dir)
	}
	f.locks[key] = l
	l.holds++
	return l, nil
}

// says writes down where the directory is, for those whose directory may hold it. What cannot
// be written leaves them to take it for one in theirs.
func (l *lock) says(dir int) {
	of, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", dir))
	if err != nil {
		return
	}
	l.of = of
	if is, err := statFD(l.fd); err == nil && is.size != uint64(len(of)) {
		unix.Ftruncate(l.fd, 0)
		unix.Pwrite(l.fd, []byte(of), 0)
		at := unix.NsecToTimeval(is.modified) // by which it says when its row began
		unix.Futimes(l.fd, []unix.Timeval{at, at})
	}
}

// tryLock takes a lock of a kind, unless others have it otherwise: EAGAIN.
func tryLock(key [2]uint64, path string, kind int16) (*lock, error) {
	const flags = unix.O_RDWR | unix.O_CLOEXEC | unix.O_NOFOLLOW
	fd, err := unix.Open(path, flags, 0)
	if err == unix.ENOENT {
		// Not in one step: root may not open, with O_CREAT, what another user has made there.
		if fd, err = unix.Open(path, flags|unix.O_CREAT|unix.O_EXCL, 0o666); err == nil {
			err = unix.Fchmod(fd, 0o666)
		} else if err == unix.EEXIST {
			err = unix.EAGAIN
		}
	}
	if err != nil {
		return nil, err
	}
	l := &lock{key: key, path: path, fd: fd}
	err = l.set(kind)
	if err == nil && !l.current() {
		err = unix.EAGAIN // somebody was done with it just now
	}
	if err != nil {
		unix.Close(fd)
		return nil, err
	}
	return l, nil
}

func (l *lock) set(kind int16) error {
	err := unix.FcntlFlock(uintptr(l.fd), unix.F_OFD_SETLK, &unix.Flock_t{Type: kind})
	if err == unix.EACCES {
		err = unix.EAGAIN
	}
	return err
}

// current reports whether the file is still the one by its name.
func (l *lock) current() bool {
	var here, there unix.Stat_t
	return unix.Fstat(l.fd, &here) == nil && unix.Lstat(l.path, &there) == nil && here.Ino == there.Ino && here.Dev == there.Dev
}

// alone calls do while nobody else needs placeholders there; false: somebody does.
func (l *lock) alone(do func() error) (bool, error) {
	if err := l.set(unix.F_WRLCK); err != nil {
		return false, nil
	}
	err := do()
	return true, errors.Join(err, l.set(unix.F_RDLCK))
}

// others reports whether other processes need placeholders in a directory.
func (f *Finder) others(dir int) bool {
	key, path, err := lockOf(dir)
	if err != nil {
		return false
	}
	l := f.locks[key]
	if l == nil {
		fd, err := unix.Open(path, unix.O_RDWR|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
		if err != nil {
			return false
		}
		defer unix.Close(fd)
		l = &lock{fd: fd}
	}
	return l.shared()
}

// shared reports whether other processes have the lock.
func (l *lock) shared() bool {
	ask := unix.Flock_t{Type: unix.F_WRLCK}
	return unix.FcntlFlock(uintptr(l.fd), unix.F_OFD_GETLK, &ask) == nil && ask.Type != unix.F_UNLCK
}

// unshare says that one placeholder less is needed. The last one who goes takes the file
// along.
func (f *Finder) unshare(l *lock) {
	if l.holds--; l.holds > 0 {
		return
	}
	delete(f.locks, l.key)
	l.end()
}

func (l *lock) end() {
	if l.set(unix.F_WRLCK) == nil && l.current() {
		unix.Unlink(l.path)
	}
	unix.Close(l.fd)
}
