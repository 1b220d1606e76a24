package disclose

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
)

// How often a word of each field counts: a tool is looked for by what it is called
// before what is said about it.
const (
	nameWeight  = 4
	titleWeight = 2
)

// mostWords of a tool's texts are indexed, so that a long description costs no more
// than this and cannot hold every word there is.
const mostWords = 600

// An Index is the tools that one agent may see, to be listed and searched. It does not
// change, and may be used concurrently.
type Index struct {
	entries  []*Entry // by name
	byName   map[string]int
	digests  [][sha256.Size]byte
	edition  string // of the list: a cursor of another one points nowhere
	words    []string
	postings [][]posting // of each word, by entry
	lengths  []float64   // of each entry, in words, against the average
}

type posting struct {
	entry int32
	count float32
}

// NewIndex is the index of the entries, discovery tools left out. Two of one name are
// refused.
func NewIndex(entries []*Entry) (*Index, error) {
	x := &Index{byName: make(map[string]int, len(entries))}
	for _, e := range entries {
		if !Discovery(e.Name) {
			x.entries = append(x.entries, e)
		}
	}
	slices.SortFunc(x.entries, func(a, b *Entry) int { return strings.Compare(a.Name, b.Name) })
	edition := sha256.New()
	for i, e := range x.entries {
		if _, twice := x.byName[e.Name]; twice {
			return nil, fmt.Errorf("tool %q is there twice; give each tool a name of its own", label(e.Name, 64))
		}
		x.byName[e.Name] = i
		x.digests = append(x.digests, e.digest())
		edition.Write(x.digests[i][:])
	}
	x.edition = hex.EncodeToString(edition.Sum(nil)[:8])
	x.count()
	return x, nil
}

// Len is how many tools there are, discovery not counted.
func (x *Index) Len() int { return len(x.entries) }

// Lookup finds a tool by its exact name.
func (x *Index) Lookup(name string) (*Entry, bool) {
	i, ok := x.byName[name]
	if !ok {
		return nil, false
	}
	return x.entries[i], true
}

// count fills in the words, where they are, and how long each tool's texts are.
func (x *Index) count() {
	byWord := map[string][]posting{}
	total := 0.0
	for i, e := range x.entries {
		length := 0.0
		add := func(text string, weight float32) {
			words(beginning(text, mostBytes), mostWords, func(word string) {
				length += float64(weight)
				in := byWord[word]
				if n := len(in); n > 0 && in[n-1].entry == int32(i) {
					in[n-1].count += weight
					return
				}
				byWord[word] = append(in, posting{int32(i), weight})
			})
		}
		add(e.Name, nameWeight)
		add(e.Title, titleWeight)
		add(e.Category, 1)
		add(e.Description, 1)
		x.lengths = append(x.lengths, length)
		total += length
	}
	for i := range x.lengths {
		x.lengths[i] /= max(1, total/float64(len(x.entries)))
	}
	for word := range byWord {
		x.words = append(x.words, word)
	}
	slices.Sort(x.words)
	for _, word := range x.words {
		x.postings = append(x.postings, byWord[word])
	}
}
