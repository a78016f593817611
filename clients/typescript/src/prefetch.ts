import { ask, since, within, type Batch, type Limit } from "./call.js";
import { NodeError } from "./errors.js";
import type { Routes } from "./routes.js";

/** How many IDs a node gives at once. */
export const maxCount = 100_000;

export const defaultMaxAge = 2000; // milliseconds
const fetchWithin = 10_000; // milliseconds
const refillRest = 1000; // milliseconds without a fetch after a failed one, unless a call waits

/** The IDs of one sequencer: in memory, at most maxAge old, and of the nodes. */
export class Stock {
  private readonly batches: Batch[] = []; // the oldest first; none is empty; the first ID of each comes last
  private left = 0; // IDs in all of them
  private wanted = 0; // IDs that callers wait for
  private rest = -Infinity; // until then only callers who wait cause a fetch
  private fetching: Promise<void> | undefined;
  private readonly prefetch;

  constructor(readonly routes: Routes) {
    const { count, maxAge = defaultMaxAge } = routes.shared.options.prefetch ?? { count: 0 };
    this.prefetch = { count, maxAge };
  }

  /** Takes n IDs: from memory, or of the nodes if the memory has no room for so many. */
  async take(n: number, limit: Limit): Promise<Batch> {
    if (n > this.prefetch.count) {
      let { ids, asked } = await ask(this.routes, { n: Math.min(n, maxCount) }, limit);
      while (ids.length < n)
        ids = join(ids, (await ask(this.routes, { n: Math.min(n - ids.length, maxCount) }, limit)).ids);
      return { ids, asked };
    }
    while (limit.end.aborted || this.expire() < n) {
      if (limit.end.aborted) throw this.routes.noAnswer(limit.end.reason);
      this.wanted += n;
      await Promise.race([this.fetch(), limit.ended]).finally(() => (this.wanted -= n));
    }
    const batch = this.pop(n);
    if (this.left <= this.prefetch.count / 2 && performance.now() >= this.rest) this.fetch().catch(() => {});
    return batch;
  }

  /** Drops IDs that are too old, and returns how many are left. */
  private expire(): number {
    const { shared, name: sequencer } = this.routes;
    const before = this.left;
    while (this.batches[0] && since(this.batches[0].asked) > this.prefetch.maxAge) {
      this.left -= this.batches.shift()!.ids.length;
    }
    if (this.left < before) shared.options.hooks?.batch?.({ sequencer, fetched: 0, expired: before - this.left });
    return this.left;
  }

  private pop(n: number): Batch {
    const { asked } = this.batches[0]!;
    let ids: Batch["ids"] = [];
    while (ids.length < n) {
      const batch = this.batches[0]!;
      ids = join(ids, batch.ids.splice(ids.length - n).reverse());
      if (batch.ids.length === 0) this.batches.shift();
    }
    this.left -= n;
    return { ids, asked };
  }

  /** Fetches one batch at a time. It continues when callers give up. */
  private fetch(): Promise<void> {
    return (this.fetching ??= this.load().finally(() => (this.fetching = undefined)));
  }

  private async load(): Promise<void> {
    const { shared, name: sequencer } = this.routes;
    const n = Math.min(this.prefetch.count - this.left + this.wanted, maxCount);
    try {
      const { ids, asked } = await within(shared, fetchWithin, (limit) => ask(this.routes, { n }, limit));
      this.batches.push({ ids: ids.reverse(), asked });
      this.left += n;
      shared.options.hooks?.batch?.({ sequencer, fetched: n, expired: 0 });
    } catch (error) {
      this.rest = performance.now() + Math.max(refillRest, error instanceof NodeError ? error.retryAfter : 0);
      shared.options.hooks?.batch?.({ sequencer, fetched: 0, expired: 0, error });
      if (error instanceof NodeError) throw error;
    }
  }
}

/** The IDs of two answers in order, since they may be from several nodes; texts stay as they are. */
function join(a: Batch["ids"], b: Batch["ids"]): Batch["ids"] {
  const all = a.concat(b);
  return typeof all[0] === "bigint" && a.length > 0 ? all.sort((x, y) => (x < y ? -1 : 1)) : all;
}
