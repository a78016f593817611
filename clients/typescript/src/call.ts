import type { Shared } from "./client.js";
import { isFinal, NodeError } from "./errors.js";
import { post, type Answer, type Query } from "./post.js";
import { backoff, longestPatience, shortestPatience, type Route, type Routes } from "./routes.js";

const lingers = 1000; // ms that a request goes on after its call has ended: that shows whether its node works
const mostOut = 2; // requests of one call to one URL at a time; the second one helps behind a balancer
const restFirst = 25; // ms after all nodes have failed, doubled each time

/** An instant, in milliseconds by two clocks. */
export type Instant = { monotonic: number; wall: number };

export function instant(): Instant {
  return { monotonic: performance.now(), wall: Date.now() };
}

/**
 * How long ago an instant was. The monotonic clock stands still while the machine sleeps, and in a snapshot of its memory,
 * and the wall clock may be set: what either has counted has passed.
 */
export function since({ monotonic, wall }: Instant): number {
  return Math.max(performance.now() - monotonic, Date.now() - wall);
}

/** IDs, and when they were asked for: before the first request was sent. */
export type Batch = { ids: (bigint | string)[]; asked: Instant };

/** When a call ends without IDs: at the deadline or before, `end` is aborted and `ended` resolved. */
export type Limit = { deadline: number; end: AbortSignal; ended: Promise<undefined> };

/** Runs a call that ends after a time, when the caller's signal is aborted, or when the client is closed. */
export async function within<T>(shared: Shared, time: number, run: (limit: Limit) => Promise<T>, signal?: AbortSignal) {
  const end = new AbortController();
  const abort = () => end.abort(signal?.reason);
  const ended = new Promise<undefined>((resolve) => end.signal.addEventListener("abort", () => resolve(undefined)));
  const timer = setTimeout(() => end.abort(new DOMException(`timeout after ${time} ms`, "TimeoutError")), time);
  signal?.addEventListener("abort", abort, { signal: end.signal });
  if (signal?.aborted) abort();
  shared.ends.add(end);
  return run({ deadline: performance.now() + time, end: end.signal, ended }).finally(() => {
    clearTimeout(timer);
    shared.ends.delete(end);
    end.abort();
  });
}

/** One request for IDs. It may outlive its call. If it takes longer than `bar`, its node is slower than another one. */
type Attempt = { route: Route; hedged: boolean; asked: Instant; bar: number; request: AbortController };

async function run(routes: Routes, query: Query, attempt: Attempt): Promise<[Attempt, Answer | NodeError]> {
  const { route, hedged, asked, request } = attempt;
  const { shared, name: sequencer } = routes;
  shared.ends.add(request);
  route.inFlight++;
  const answer = await post(routes, route.node, query, request.signal);
  shared.ends.delete(request);
  route.inFlight--;
  const error = answer instanceof NodeError ? answer : undefined;
  if (error && !isFinal(error)) route.fails(error);
  else if (!(answer instanceof NodeError) && !isSlow(attempt)) route.works(answer.leaving);
  const duration = performance.now() - asked.monotonic;
  shared.options.hooks?.attempt?.({ node: route.node, sequencer, count: query.n, duration, hedged, error });
  return [attempt, answer];
}

function isSlow({ route, asked, bar }: Attempt): boolean {
  const time = performance.now() - asked.monotonic;
  if (time > bar) route.fails(new NodeError(route.node, `slower than other nodes: ${Math.round(time)} ms`));
  return time > bar;
}

/** Asks one node after the other, and several at once when they are slow, up to the limit. */
export async function ask(routes: Routes, query: Query, limit: Limit): Promise<Batch> {
  const { n } = query;
  const live = new Map<Attempt, Promise<[Attempt, Answer | NodeError]>>();
  const tried = new Set<Route>(); // in this round
  const patience = routes.patience(n); // within which nearly every answer comes
  let [wait, failures] = [patience, 0];
  let limited: NodeError | undefined; // to throw when no attempt succeeds
  let alarm: Promise<undefined> | undefined;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const out = (route: Route) => [...live.keys()].filter((a) => a.route === route).length;

  /** Asks a node. Returns false if there is none, because all were asked in this round. */
  function send(route = routes.pick(tried, out)): boolean {
    if (!route) return false;
    const [hedged, asked, request] = [live.size > 0, instant(), new AbortController()];
    const attempt = { route, hedged, asked, bar: Infinity, request };
    tried.add(route);
    live.set(attempt, run(routes, query, attempt));
    return true;
  }

  /** Sets the alarm, but leaves half of the time for another node. */
  function rest(time: number): void {
    const half = Math.max((limit.deadline - performance.now()) / 2, shortestPatience);
    clearTimeout(timer);
    alarm = new Promise((resolve) => (timer = setTimeout(() => resolve(undefined), Math.min(time, half))));
  }

  if (limit.end.aborted) throw routes.noAnswer(limit.end.reason);
  send();
  const probed = routes.due(tried);
  if (probed) send(probed);
  rest(wait);
  try {
    for (;;) {
      const event = await Promise.race([...live.values(), alarm, limit.ended]);
      if (limit.end.aborted) throw limited ?? routes.noAnswer(limit.end.reason);
      if (!event) {
        if (!limited && !send()) {
          for (const route of tried) if (out(route) < mostOut) tried.delete(route);
          send();
        }
        rest((wait = Math.min(2 * wait, longestPatience)));
        continue;
      }
      const [{ asked, route }, answer] = event;
      live.delete(event[0]);
      const alone = live.size === 0;
      if (answer instanceof NodeError && !(isFinal(answer) && (alone || answer.status !== 429))) {
        if (isFinal(answer)) limited = answer; // perhaps only because this call has sent more than one request
        if (limited && alone) throw limited;
        const others = limited || (route === probed && !alone) || send();
        if (!others && alone) rest(backoff(restFirst, longestPatience, failures++));
        continue;
      }
      const duration = performance.now() - asked.monotonic;
      for (const other of live.keys()) {
        other.bar = Math.max(patience, 2 * duration);
        isSlow(other);
      }
      if (answer instanceof NodeError) throw answer;
      routes.took(n, duration);
      return { ids: answer.ids, asked };
    }
  } finally {
    clearTimeout(timer);
    const reason = new DOMException("another node has answered, or the call has ended", "AbortError");
    for (const { request } of live.keys()) setTimeout(() => request.abort(reason), lingers);
  }
}
