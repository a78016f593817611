// Nodes without a network, and time that passes only when everything waits for it.
import { Client, type Kind, type Options } from "../dist/index.js";

/** How a node answers a request for n IDs. */
export type Behaviour = (
  fleet: Fleet,
  n: number,
  request: { url: URL; signal: AbortSignal; headers: Headers },
) => Promise<Response>;

interface Timer {
  at: number;
  run: () => void;
}

const real = { setTimeout, clearTimeout };
const { setImmediate } = globalThis;
const realWall = Date.now;
let asleep = 0; // milliseconds for which the machine slept, which only the wall clock has counted

/** Has the machine sleep, or lie in a snapshot, so that the monotonic clock stands still. */
export function suspend(time: number): void {
  asleep += time;
}

/** Runs a test in simulated time. It fails when everything waits for something that never comes. */
export async function simulate(test: () => Promise<void>): Promise<void> {
  let now = 1000;
  const timers = new Set<Timer>();
  Object.assign(globalThis, {
    setTimeout: (run: () => void, after = 0) => {
      const timer = { at: now + Math.max(after, 0), run };
      timers.add(timer);
      return timer;
    },
    clearTimeout: (timer: Timer) => timers.delete(timer),
  });
  Object.defineProperty(performance, "now", { value: () => now, configurable: true }); // over that of its class
  Date.now = () => now + asleep;
  let result: { error?: unknown } | undefined;
  test().then(
    () => (result = {}),
    (error: unknown) => (result = { error }),
  );
  try {
    for (;;) {
      await quiet();
      if (result) break;
      const next = [...timers].sort((a, b) => a.at - b.at)[0];
      if (!next) throw new Error("everything waits, and no timer is set");
      timers.delete(next);
      now = next.at;
      next.run();
    }
  } finally {
    Object.assign(globalThis, real);
    Reflect.deleteProperty(performance, "now");
    Date.now = realWall;
  }
  if ("error" in result) throw result.error;
}

/** Waits until nothing can go on without time: everything here happens in microtasks, which come before. */
async function quiet(): Promise<void> {
  for (let i = 0; i < 2; i++) await new Promise((resolve) => setImmediate(resolve));
}

export function sleep(time: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, time));
}

/** Nodes without a network. */
export class Fleet {
  readonly asked: Record<string, number> = {}; // requests, by host
  readonly paths: string[] = [];
  readonly sent = new Map<bigint, number>(); // when the request for an ID came
  last = 1n << 60n;

  constructor(readonly nodes: Record<string, Behaviour>) {}

  requests(...hosts: string[]): number {
    return hosts.reduce((sum, host) => sum + (this.asked[host] ?? 0), 0);
  }

  readonly fetch = ((input: string, init: RequestInit) => {
    const url = new URL(input);
    if (init.redirect !== "error") throw new Error("it follows redirects, which can end in a loop");
    this.asked[url.host] = (this.asked[url.host] ?? 0) + 1;
    this.paths.push(url.pathname + url.search);
    const n = Number(url.searchParams.get("count") ?? 1);
    return this.nodes[url.host]!(this, n, { url, signal: init.signal!, headers: new Headers(init.headers) });
  }) as typeof fetch;

  /** A client of some of the nodes. The last one is the first to be asked. */
  client<K extends Kind = "bigint">(hosts: string, options: Options<K> = {}): Client<K> {
    const urls = hosts
      .split(" ")
      .reverse()
      .map((host) => `http://${host}`);
    return new Client(urls, { timeout: 1000, ...options, fetch: this.fetch });
  }
}

export function packed(ids: bigint[], headers: Record<string, string> = {}): Response {
  const view = new DataView(new ArrayBuffer(ids.length * 8));
  ids.forEach((id, i) => view.setBigInt64(i * 8, id));
  return new Response(view.buffer, { headers: { "content-type": "application/octet-stream", ...headers } });
}

function pause(after: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    signal.addEventListener("abort", () => reject(signal.reason));
    if (after < Infinity) setTimeout(resolve, after);
  });
}

/** A node that works, and takes so long. */
export function gives(after: number, headers: Record<string, string> = {}): Behaviour {
  return async (fleet, n, { url, signal }) => {
    const came = performance.now();
    await pause(after, signal);
    const ids = Array.from({ length: n }, () => ++fleet.last);
    for (const id of ids) fleet.sent.set(id, came);
    const form = url.searchParams.get("form");
    if (!form) return packed(ids, headers);
    const texts = ids.map((id) => `${form}_${id}`);
    return Response.json(url.pathname.endsWith("/id") ? { id: texts[0] } : { ids: texts }, { headers });
  };
}

/** A node that answers with an error. */
export function refuses(status: number, code: string, headers: Record<string, string> = {}): Behaviour {
  return async () => Response.json({ error: { code, message: "so it is" } }, { status, headers });
}

/** A node that answers what is no error and no IDs. */
export function says(status: number, body: string | null, headers: Record<string, string> = {}): Behaviour {
  return async () => new Response(body, { status, headers });
}

/** A node that can't be reached. */
export const resets: Behaviour = async () => {
  throw new TypeError("fetch failed", { cause: Object.assign(new Error("connection reset"), { code: "ECONNRESET" }) });
};

/** A node that was stopped. */
export const hangs: Behaviour = async (_, __, { signal }) => {
  await pause(Infinity, signal);
  throw new Error("unreachable");
};

/** The error of a call. */
export async function rejection<E>(call: Promise<unknown>): Promise<E> {
  try {
    await call;
  } catch (error) {
    return error as E;
  }
  throw new Error("the call succeeds");
}
