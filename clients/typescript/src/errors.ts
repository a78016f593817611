/** The codes of errors, by status. The page docs/errors.md of firn says when each is sent. */
export const codes = {
  400: ["bad_request"],
  401: ["unauthenticated"],
  403: ["forbidden", "cross_origin"],
  404: ["unknown_sequencer", "no_quorum", "not_found", "unknown_position"],
  405: ["method_not_allowed"],
  409: ["exists", "in_use", "attached_again", "refused", "exhausted", "lost"],
  413: ["too_large"],
  429: ["rate_limited", "quota"],
  500: ["internal", "unreadable"],
  503: ["not_ready", "clock", "copied", "waiting", "detached", "unfit", "unavailable", "overloaded", "lifetime"],
} as const;

/** A code of an error. Newer nodes may send others. */
export type Code = (typeof codes)[keyof typeof codes][number] | (string & {});

/** What a node gives instead of IDs. A call rejects with it when neither another node nor another attempt would help. */
export class NodeError extends Error {
  override readonly name: string = "NodeError";

  constructor(
    readonly node: string, // its URL
    reason: unknown,
    readonly status = 0, // of HTTP; 0: no answer, or none that can be read
    readonly code: Code = "", // "": the answer is not from a firn node
    readonly retryAfter = 0, // milliseconds after which to ask the node again; 0: it does not say
  ) {
    const said = [status ? `${node} answers ${status}` : node, code, explain(reason)];
    super(said.filter(Boolean).join(": "), { cause: reason });
  }
}

/** Nodes of several clusters answer. They would give the same IDs, so the client takes none from those it met later. */
export class MixedError extends NodeError {
  override readonly name: string = "MixedError";

  constructor(
    node: string,
    readonly cluster: string, // of the node
    readonly other: string, // the node that answered last before
    readonly otherCluster: string, // of that node, from which the client takes IDs
  ) {
    super(node, `it is of cluster ${cluster}, and ${other} was of cluster ${otherCluster}; want the nodes of one cluster`);
  }
}

/** Whether an error is for the caller: another node would hide its mistake, or evade its limit. */
export function isFinal(error: NodeError): boolean {
  const { status, code } = error;
  if (error instanceof MixedError) return true;
  if (status === 404) return code !== ""; // without, it is not a firn node
  if (status === 503) return code === "lifetime";
  return status >= 400 && status < 500 && status !== 408;
}

/** No node gave IDs before the call timed out, or its signal was aborted. `errors` has a NodeError for each node. */
export class NoAnswerError extends AggregateError {
  override readonly name = "NoAnswerError";

  constructor(errors: NodeError[], cause: unknown) {
    super(errors, `no node gave an ID: ${[cause, ...errors].map(explain).join("; ")}`, { cause });
  }
}

/** A call came after `close`. */
export class ClosedError extends Error {
  override readonly name = "ClosedError";
  override readonly message = "the client is closed";
}

/** The text of an error and what caused it: fetch itself says only "fetch failed". */
function explain(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const text = error.message || ("code" in error ? String(error.code) : error.name);
  return error instanceof NodeError || error.cause === undefined ? text : `${text}: ${explain(error.cause)}`;
}
