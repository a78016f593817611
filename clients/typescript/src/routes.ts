import type { Shared } from "./client.js";
import { NoAnswerError, NodeError } from "./errors.js";

/** All times are in milliseconds. */
const avoidFirst = 100; // how long the client avoids a node, doubled with each failure in a row
const avoidMost = 5000;
const leavingPause = 1000; // of a node that closes its connections, because it is about to stop
const firstPatience = 100; // with a node, while nothing is known, plus
const patiencePerId = 0.005; // that is asked for
export const shortestPatience = 10;
export const longestPatience = 1000;
const classOf = (n: number) => 32 - Math.clz32(n - 1); // of requests for about n IDs: 1, 2, up to 4, up to 8 and so on

/** The pause after so many earlier failures in a row, less up to half of it, at random. */
export function backoff(first: number, most: number, failures: number): number {
  return Math.min(first * 2 ** failures, most) * (1 - Math.random() / 2);
}

/** A node as one sequencer sees it: a node may give IDs of one sequencer and not of another. */
export class Route {
  inFlight = 0;
  failures = 0; // in a row; one that begins within the pause after another is not counted
  until = -Infinity; // the node is avoided until then, and after failures until it gives IDs again
  error: NodeError | undefined; // of the last failure; undefined: the node works

  constructor(readonly node: string) {}

  works(leaving: boolean): void {
    [this.failures, this.error] = [0, undefined];
    this.until = leaving ? performance.now() + leavingPause : -Infinity;
  }

  fails(error: NodeError): void {
    const now = performance.now();
    this.error = error;
    if (this.failures === 0 || now >= this.until) this.pause();
    this.until = Math.max(this.until, now + Math.min(error.retryAfter, avoidMost));
  }

  pause(): void {
    this.until = performance.now() + backoff(avoidFirst, avoidMost, this.failures++);
  }
}

/** What a client knows of its nodes, for one sequencer and form. */
export class Routes {
  readonly path: string;
  seen = { id: 0n, node: "" }; // the greatest ID that a node gave, and that node
  private readonly list: Route[]; // the one that was picked last comes last
  private readonly paces: { mean: number; deviation: number }[] = []; // of recent answers, by class

  constructor(
    readonly shared: Shared,
    readonly name: string, // of the sequencer; "": the default one
    readonly form: string, // that nodes write; "": packed IDs
  ) {
    this.path = name ? `/api/v1/sequencers/${encodeURIComponent(name)}` : "/api/v1";
    this.list = shared.nodes.map((node) => new Route(node));
  }

  /** The time within which nearly every answer with n IDs comes, computed as TCP does to detect lost packets (RFC 6298). */
  patience(n: number): number {
    const pace = this.paces[classOf(n)];
    if (!pace) return firstPatience + n * patiencePerId;
    return Math.min(Math.max(pace.mean + 4 * pace.deviation, shortestPatience), longestPatience);
  }

  took(n: number, time: number): void {
    const { mean, deviation } = this.paces[classOf(n)] ?? { mean: time, deviation: (time * 2) / 3 };
    const difference = Math.abs(time - mean);
    this.paces[classOf(n)] = { mean: mean + (time - mean) / 8, deviation: deviation + (difference - deviation) / 4 };
  }

  /** Picks a route not tried yet, by its requests of this call, by whether and until when it is avoided, and by its load. */
  pick(tried: Set<Route>, out: (route: Route) => number): Route | undefined {
    const now = performance.now();
    const avoided = (r: Route) => r.failures > 0 || now < r.until;
    const rank = (r: Route) => (avoided(r) ? 2 ** 31 + r.until : r.inFlight);
    const free = this.list.filter((r) => !tried.has(r)).sort((a, b) => out(a) - out(b) || rank(a) - rank(b));
    if (free[0]) this.list.push(...this.list.splice(0, this.list.indexOf(free[0]) + 1));
    return free[0];
  }

  /** Picks a route for a probe: one that has failed, was not tried yet, and whose pause is over. */
  due(tried: Set<Route>): Route | undefined {
    const route = this.list.find((r) => !tried.has(r) && r.failures > 0 && performance.now() >= r.until);
    route?.pause(); // one probe is enough
    return route;
  }

  noAnswer(cause: unknown): NoAnswerError {
    const error = (node: string) => this.list.find((r) => r.node === node)?.error ?? new NodeError(node, "no answer");
    return new NoAnswerError(this.shared.nodes.map(error), cause);
  }
}
