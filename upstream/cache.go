package upstream

import (
	"container/list"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"github.com/writ-run/writ"
)

// The bounds of the cache.
const (
	cacheLife  = 60 * time.Second
	cacheCount = 256
	cacheBytes = 256 << 10 // of one result; a larger one is not kept
)

// CacheKey is what has to be the same for a result to be given again. The agent is
// part of it: what a server shows one, another may not be shown.
type CacheKey struct {
	Agent      string
	Server     string
	Definition writ.Digest
	Args       string // canonical
}

// Cache keeps results of tools that may be asked twice. Safe for concurrent use.
type Cache struct {
	now func() time.Time

	mu    sync.Mutex
	order *list.List // of *kept, the last used first
	byKey map[CacheKey]*list.Element
}

type kept struct {
	key    CacheKey
	result json.RawMessage
	until  time.Time
}

// NewCache makes an empty cache that tells the time by now.
func NewCache(now func() time.Time) *Cache {
	return &Cache{now: now, order: list.New(), byKey: map[CacheKey]*list.Element{}}
}

// Cacheable reports whether results of a tool may be given again: the server says
// that it only reads, and the operator that its results may be old.
func Cacheable(t Tool, declared []string) bool {
	class, dangerous := Proposed(t)
	return class != writ.ClassWrite && !dangerous && slices.Contains(declared, t.Name)
}

// Get is a result that is not older than a minute.
func (c *Cache) Get(k CacheKey) (json.RawMessage, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.byKey[k]
	if !ok {
		return nil, false
	}
	if v := e.Value.(*kept); c.now().Before(v.until) {
		c.order.MoveToFront(e)
		return v.result, true
	}
	c.drop(e)
	return nil, false
}

// Put keeps a result, unless it is an error, is not the end of a call, or is large.
func (c *Cache) Put(k CacheKey, result json.RawMessage) {
	if len(result) > cacheBytes || ResultType(result) != "complete" || string(field(result, "isError")) == "true" {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if old, ok := c.byKey[k]; ok {
		c.drop(old)
	}
	c.byKey[k] = c.order.PushFront(&kept{k, result, c.now().Add(cacheLife)})
	if c.order.Len() > cacheCount {
		c.drop(c.order.Back())
	}
}

func (c *Cache) drop(e *list.Element) {
	delete(c.byKey, e.Value.(*kept).key)
	c.order.Remove(e)
}
