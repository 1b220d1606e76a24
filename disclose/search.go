package disclose

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"unicode/utf8"
)

// The bounds of a query; what is beyond them is not looked for.
const (
	queryBytes = 400
	queryWords = 32
	mostAlike  = 100 // words that begin with a word of the query
)

// The constants of BM25: how soon a word said again stops to matter, and how much a
// long text has to say it more often.
const (
	k1 = 1.2
	b  = 0.75
)

// begins is how much a word that only begins with one of the query counts.
const begins = 0.4

// A Hit is a tool that matches a query. A higher score is better; scores of different
// queries do not compare.
type Hit struct {
	Entry *Entry
	Score float64
}

// Search ranks the tools that hold a word of the query by BM25, the best first and by
// name where they are equal; a tool that the query names goes before all others. A
// query without words finds all tools, by name. A limit of 0 or less is none.
func (x *Index) Search(query string, limit int) []Hit {
	query = beginning(query, queryBytes)
	scores := make([]float64, len(x.entries))
	asked := false
	words(query, queryWords, func(word string) {
		asked = true
		x.score(word, scores)
	})
	named := fold(strings.TrimSpace(query))
	var hits []Hit
	for i, e := range x.entries {
		if scores[i] > 0 && len(e.Name) == len(named) && fold(e.Name) == named {
			scores[i] += math.MaxInt32
		}
		if scores[i] > 0 || !asked {
			hits = append(hits, Hit{e, scores[i]})
		}
	}
	slices.SortStableFunc(hits, func(a, b Hit) int { return cmp.Compare(b.Score, a.Score) }) // they are by name
	if limit > 0 && len(hits) > limit {
		hits = hits[:limit]
	}
	return hits
}

// score adds what one word of a query is worth to the tools that hold it, or else one
// that begins with it: of several the best, so that many forms of a word are not many
// words.
func (x *Index) score(word string, scores []float64) {
	at, exact := slices.BinarySearch(x.words, word)
	last := at
	if exact {
		last++
	}
	if utf8.RuneCountInString(word) > 2 || word[0] >= utf8.RuneSelf {
		for last < len(x.words) && last-at < mostAlike && strings.HasPrefix(x.words[last], word) {
			last++
		}
	}
	best := make([]float64, len(x.entries))
	for i := at; i < last; i++ {
		in := x.postings[i]
		worth := math.Log(1 + (float64(len(x.entries)-len(in))+0.5)/(float64(len(in))+0.5))
		if i > at || !exact {
			worth *= begins
		}
		for _, p := range in {
			count := float64(p.count)
			best[p.entry] = max(best[p.entry], worth*count*(k1+1)/(count+k1*(1-b+b*x.lengths[p.entry])))
		}
	}
	for entry, worth := range best {
		scores[entry] += worth
	}
}
