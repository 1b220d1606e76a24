package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/user"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"golang.org/x/term"

	"github.com/writ-run/writ/client"
	"github.com/writ-run/writ/display"
	"github.com/writ-run/writ/person"
)

// Visible makes text of an agent safe to print; see package display.
func Visible(s string) string { return display.Visible(s) }

// OneLine is visible for a cell of a table.
func OneLine(s string) string { return display.Line(s) }

func IsTerminal(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }

func PrintJSON(v any) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return err
	}
	_, err := os.Stdout.WriteString(spelled(b.String()))
	return err
}

// spelled writes out, as JSON does, what a terminal would not show or would obey. It
// stands in strings only, so the value stays the same.
func spelled(text string) string {
	var b strings.Builder
	for _, r := range text {
		switch hidden := r != '\n' && r > 0x7e && display.Visible(string(r)) != string(r); {
		case hidden && r > 0xffff:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&b, "\\u%04x\\u%04x", high, low)
		case hidden:
			fmt.Fprintf(&b, "\\u%04x", r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// PassphraseSource is where a person's passphrase is read: the terminal, or with
// --passphrase-stdin one line of standard input, for password managers. Never a
// file, a flag or the environment.
type PassphraseSource struct {
	Name  string
	Stdin bool
	lines *bufio.Reader
}

// who refuses early, before anything is shown or typed, where it cannot be told who
// acts.
func (p *PassphraseSource) who(ctx context.Context, daemon *client.Client) error {
	people, err := daemon.People().All(ctx)
	switch {
	case err != nil:
		return err
	case len(people) == 0:
		return fmt.Errorf("nobody can decide yet; '%s init' makes the first person", Self())
	case len(people) > 1 && p.Name == "":
		return errors.New("there are several people; say who you are, with --as NAME")
	}
	return nil
}

// connectAs is connect, for what a person decides.
func (a *App) connectAs(ctx context.Context, src *PassphraseSource) (*client.Client, error) {
	daemon, err := a.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return daemon, src.who(ctx, daemon)
}

func (p *PassphraseSource) credentials(ctx context.Context) (client.Credentials, error) {
	prompt := "Passphrase: "
	if p.Name != "" {
		prompt = "Passphrase of " + OneLine(p.Name) + ": "
	}
	pass, err := p.read(ctx, prompt)
	return client.Credentials{Name: p.Name, Passphrase: pass}, err
}

// Chosen reads a new passphrase, twice on a terminal.
func (p *PassphraseSource) Chosen(ctx context.Context) (string, error) {
	first, err := p.read(ctx, fmt.Sprintf("Choose a passphrase, at least %d characters: ", person.MinPassphrase))
	if err != nil || p.Stdin || utf8.RuneCountInString(first) < person.MinPassphrase {
		return first, err
	}
	again, err := p.read(ctx, "Again: ")
	if err == nil && again != first {
		err = errors.New("the two passphrases differ; nothing was changed")
	}
	return first, err
}

func (p *PassphraseSource) read(ctx context.Context, prompt string) (string, error) {
	if p.Stdin {
		if p.lines == nil {
			p.lines = bufio.NewReader(os.Stdin)
		}
		line, err := p.lines.ReadString('\n')
		if err != nil && (err != io.EOF || line == "") {
			return "", errors.New("there is no passphrase on standard input")
		}
		return strings.TrimRight(line, "\r\n"), nil
	}
	tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	if err != nil {
		return "", errors.New("a passphrase is typed on a terminal, and there is none; run it in one, or pipe the passphrase in with --passphrase-stdin")
	}
	defer tty.Close()
	fmt.Fprint(tty, prompt)
	before, err := term.GetState(int(tty.Fd()))
	if err != nil {
		return "", err
	}
	// Reading a terminal cannot be called off, so Ctrl-C puts it back as it was
	// and ends the program. Nothing has been sent yet.
	read := make(chan struct{})
	defer close(read)
	go func() {
		select {
		case <-ctx.Done():
			_ = term.Restore(int(tty.Fd()), before)
			fmt.Fprintln(tty, "\nwrit: interrupted; nothing was changed")
			os.Exit(ExitError)
		case <-read:
		}
	}()
	pass, err := term.ReadPassword(int(tty.Fd()))
	fmt.Fprintln(tty)
	if err == io.EOF {
		err = errors.New("no passphrase was typed; nothing was changed")
	}
	return string(pass), err
}

func UserName() string {
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return "me"
}

// Self is how this program is called from where the person is: by its name when
// that finds it, else as it was called now.
func Self() string {
	typed, _, err1 := programs()
	found, err2 := exec.LookPath(front)
	if err1 == nil && err2 == nil && same(typed, found) {
		return front
	}
	return os.Args[0]
}
