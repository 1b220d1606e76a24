package native

import (
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/sandbox"
	"github.com/writ-run/writ/sandbox/reach"
	"github.com/writ-run/writ/sandbox/trust"
	"golang.org/x/sys/unix"
)

// trust has the programs of a box trust its outlet, where that looks into their TLS.
func (p *plan) trust(r *runner, out io.Closer) error {
	with, ok := out.(sandbox.Authority)
	if !ok || with.Authority() == nil {
		return nil
	}
	c, err := trust.Of(with.Authority())
	if err != nil {
		return writ.Fail(writ.SandboxUnavailable, "sandbox_unavailable: "+err.Error(), err)
	}
	p.Env = c.Over(p.Env)
	s := &script{}
	s.instead(c.Files)
	ready, err := s.message(inPlace, 0)
	if err != nil {
		return err
	}
	r.cell.conn.tell('m') // while it waits for the runner
	return r.cell.mount(&mounting{message: ready})
}

// instead shows files in place of others, within the root that was entered. They are made
// in a directory that is gone afterwards, over one that nothing uses yet.
func (s *script) instead(files map[string][]byte) {
	s.doing("trust the authority of the sandbox")
	const at = reach.PrivateTmp
	s.tmpfs(at, unix.MS_NOEXEC, "mode=755,size=16m,nr_inodes=64")
	for _, path := range slices.Sorted(maps.Keys(files)) {
		name := at + "/" + strings.ReplaceAll(path, "/", "_")
		s.file(name, files[path])
		tree := s.copyOf(name)
		s.setattr(tree, readOnly|noExec, 0)
		// A box may show less of the system than there is.
		s.callMay(unix.ENOENT, unix.SYS_MOVE_MOUNT, tree, s.text(""), here, s.text(path), num(unix.MOVE_MOUNT_F_EMPTY_PATH))
		s.call(unix.SYS_CLOSE, tree)
	}
	s.call(unix.SYS_UMOUNT2, s.text(at), num(unix.MNT_DETACH))
}
