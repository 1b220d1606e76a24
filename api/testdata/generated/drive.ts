// Drives the daemon with a client whose types were generated from its document.
// What does not fit the document does not compile.
import createClient from "openapi-fetch";
import type { components, paths } from "./schema.js";

declare const process: { argv: string[]; exitCode: number };

const [url, token] = process.argv.slice(2);
if (url === undefined || token === undefined) throw new Error("usage: drive URL TOKEN");
const writ = createClient<paths>({ baseUrl: url, headers: { Authorization: `Bearer ${token}` } });

type Problem = components["schemas"]["Problem"];
const say = (what: string, ...values: unknown[]) => console.log(what, values.map((v) => JSON.stringify(v)).join(" "));

const health = await writ.GET("/v1/health");
say("health", health.data?.status);

const made = await writ.POST("/v1/sessions", { body: { name: "generated" } });
if (!made.data) throw new Error(JSON.stringify(made.error));
const session = made.data.id;
say("session", made.data.agent, made.data.name);

const wrote = await writ.POST("/v1/calls", {
  params: { query: { wait: 0 } },
  body: { tool: "write_file", args: { path: "hello.txt", content: "hi" }, session, task: "greet" },
});
if (!wrote.data || !("content" in wrote.data)) throw new Error(JSON.stringify(wrote));
say("call", wrote.data.content, wrote.data.is_error);

const denied = await writ.POST("/v1/calls", { body: { tool: "read_file", args: { path: "/etc/shadow" } } });
const problem: Problem | undefined = denied.error;
say("denied", denied.response.status, problem?.kind, problem?.type, problem?.call_id !== undefined);

const asked = await writ.POST("/v1/calls", { body: { tool: "delete_file", args: { path: "hello.txt" } } });
if (!asked.data || !("kind" in asked.data)) throw new Error(JSON.stringify(asked));
const approval = asked.data.approval ?? "";
say("asked", asked.response.status, asked.data.kind, approval.startsWith("call_"), approval === asked.data.call_id, asked.data.resume === `/v1/invocations/${approval}`);

const waiting = await writ.GET("/v1/approvals/{id}", { params: { path: { id: approval } } });
say("approval", waiting.data?.state, waiting.data?.args_bytes, waiting.data?.args_sha256 !== undefined, waiting.data?.call === undefined);

const invocation = await writ.GET("/v1/invocations/{id}", { params: { path: { id: approval }, query: { wait: 0 } } });
say("invocation", invocation.data?.status, invocation.data?.approval_status, invocation.data?.result !== undefined);
const given = { idempotency_key: "greeting 1", cost_estimate: 0.5, tool: "write_file", args: { path: "twice.txt", content: "once" }, session };
const once = await writ.POST("/v1/calls", { body: given });
const twice = await writ.POST("/v1/calls", { body: given });
say("key", JSON.stringify(once.data) === JSON.stringify(twice.data), once.data !== undefined && "content" in once.data && once.data.content);
const cancelled = await writ.POST("/v1/invocations/{id}/cancel", { params: { path: { id: approval } } });
say("cancel", cancelled.data?.status);

const batch = await writ.POST("/v1/batches", {
  body: {
    session,
    order: "in_order",
    calls: [
      { tool: "read_file", args: { path: "hello.txt" } },
      { tool: "read_file", args: { path: "/etc/shadow" } },
      { tool: "stat", args: { path: "hello.txt" } },
    ],
  },
});
say("batch", ...(batch.data?.results.map((r) => r.error?.kind ?? r.is_error) ?? []));

let pages = 0;
const names: string[] = [];
for (let cursor: string | undefined; ; ) {
  const page = await writ.GET("/v1/tools", { params: { query: { limit: 3, cursor } } });
  if (!page.data) throw new Error(JSON.stringify(page.error));
  pages++;
  names.push(...page.data.data.map((t) => t.name));
  if (!page.data.has_more) break;
  cursor = page.data.next_cursor;
}
say("tools", pages > 1, names.includes("read_file"), new Set(names).size === names.length);

const kid = await writ.POST("/v1/delegations", { body: { name: "kid", lasts_seconds: 60, request: { level: "sandboxed", allowed: ["read_file"] } } });
if (!kid.data) throw new Error(JSON.stringify(kid.error));
const ended = await writ.POST("/v1/delegations/{name}/end", { params: { path: { name: kid.data.agent } } });
say("delegation", kid.data.parent, ended.data?.status);

const closed = await writ.POST("/v1/sessions/{id}/end", { params: { path: { id: session } } });
say("end", closed.data?.status);
