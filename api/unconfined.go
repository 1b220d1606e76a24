package api

import (
	"github.com/writ-run/writ/client"
	"github.com/writ-run/writ/engine"
)

func startUnconfined(x *exchange) (any, error) {
	id, err := x.engine.Unconfined().StartUnconfined(x.r.Context(), engine.UnconfinedRun(body[client.UnconfinedRequest](x)))
	return client.Unconfined{ID: id}, err
}

func endUnconfined(x *exchange) (any, error) {
	end := engine.UnconfinedEnd(body[client.UnconfinedEnd](x))
	return client.Status{Status: "ended"}, x.engine.Unconfined().EndUnconfined(x.r.Context(), x.r.PathValue("id"), end)
}
