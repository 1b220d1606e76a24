package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/term"

	"github.com/writ-run/writ/display"
)

// errNotRead says that somebody did not look at all of what they were to decide about.
var errNotRead = errors.New("not all of it was looked at; nothing was decided")

// readThrough prints a text; on a terminal that is too small for it, page by page,
// and an error where somebody stops before the end.
func readThrough(ctx context.Context, text string) error {
	width, height, err := term.GetSize(int(os.Stdout.Fd()))
	if err != nil || !IsTerminal(os.Stdin) || fits(text, width, height) {
		fmt.Print(text)
		return nil
	}
	pages := display.Paginate(text, max(height-2, 5), max(width-1, 40))
	for n := 1; n <= pages.Count(); n++ {
		fmt.Println(strings.TrimSuffix(pages.Page(n), "\n"))
		if n == pages.Count() {
			return nil
		}
		fmt.Printf("-- %s; any key goes on, q stops --", pages.Title(n))
		key, err := readKey(ctx)
		fmt.Print("\r\x1b[K")
		if err != nil {
			return err
		}
		if key == 'q' || key == 3 {
			return errNotRead
		}
	}
	return nil
}

func fits(text string, width, height int) bool {
	rows := 0
	for line := range strings.SplitSeq(text, "\n") {
		rows += 1 + len([]rune(line))/max(width, 1)
	}
	return rows < height
}

// readKey reads one key from the terminal.
func readKey(ctx context.Context) (byte, error) {
	fd := int(os.Stdin.Fd())
	before, err := term.MakeRaw(fd)
	if err != nil {
		return 0, err
	}
	defer func() { _ = term.Restore(fd, before) }()
	var b [1]byte
	if _, err := os.Stdin.Read(b[:]); err != nil {
		return 0, err
	}
	return b[0], ctx.Err()
}
