package api

import "bytes"

// showMetrics answers whole or not at all: half of it would look like counters that went back.
func showMetrics(x *exchange) error {
	var b bytes.Buffer
	if err := x.engine.Metrics(x.r.Context(), &b); err != nil {
		return err
	}
	x.w.Header().Set("Content-Type", x.route.media+"; version=0.0.4; charset=utf-8")
	_, err := b.WriteTo(x.w)
	if err != nil {
		x.log.Debug("metrics were not read to their end", "err", err)
	}
	return nil
}
