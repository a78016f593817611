import { ask, since, within, type Batch, type Limit } from "./call.js";
import { Clusters } from "./clusters.js";
import { encode, isEncoding, parse } from "./encoding.js";
import { ClosedError } from "./errors.js";
import type { CallOptions, Form, IdOf, Kind, Options } from "./options.js";
import { defaultMaxAge, maxCount, Stock } from "./prefetch.js";
import { Routes } from "./routes.js";

/** What the sequencers of a client share. */
export interface Shared {
  nodes: readonly string[];
  options: Omit<Options, "form">;
  clusters: Clusters;
  stocks: Map<string, Stock>; // by form and name
  calls: Set<Promise<unknown>>;
  ends: Set<AbortController>; // of requests and calls
  closed: boolean;
}

/** Takes IDs of one sequencer. */
export class Sequencer<K extends Kind> {
  private readonly stock: Stock;

  constructor(
    protected readonly shared: Shared,
    name: string,
    protected readonly kind: K,
  ) {
    const form = kind === "bigint" || isEncoding(kind) ? "" : kind;
    this.stock = shared.stocks.get(`${form} ${name}`) ?? new Stock(new Routes(shared, name, form));
    shared.stocks.set(`${form} ${name}`, this.stock);
  }

  /** Takes one ID; else as `take`. */
  async next(options?: CallOptions): Promise<IdOf<K>> {
    return (await this.take(1, options))[0]!;
  }

  /**
   * Takes 0 or more IDs, which ascend unless the sequencer scatters them: 100000 with each request. Rejects with a NodeError
   * when a node refuses for a reason that the caller must fix, with a MixedError when nodes of several clusters answer, with a
   * NoAnswerError when no node gives IDs in time, with a ClosedError after `close`, and with a RangeError for a bad argument.
   */
  async take(count: number, options?: CallOptions): Promise<IdOf<K>[]> {
    const { stock, kind } = this;
    const ids = await this.call(count, (limit) => stock.take(count, limit), options);
    return (isEncoding(kind) ? ids.map((id) => encode(id as bigint, kind)) : ids) as IdOf<K>[];
  }

  /**
   * Has a node write an ID, or a text of one in any form, in another form: "sealed" seals it, "decimal" opens it where the
   * token may. `as` is the form of the text; a node refuses a text that is an ID in several forms without it. Rejects as
   * `take`, with a SyntaxError for a text that no ID has, and with a TypeError for a number, which does not hold an ID.
   */
  async convert(id: bigint | string, form: Form, options: CallOptions & { as?: Form | undefined } = {}): Promise<string> {
    const as = typeof id === "string" ? options.as : "decimal";
    const text = typeof id === "string" ? id : encode(id, "decimal");
    if (!/^\ufeff?[\w{}:-]+$/.test(text)) {
      if (text.includes(".")) parse(text, "decimal"); // its error says what is wrong with a floating-point number
      throw new SyntaxError(`${JSON.stringify(text.slice(0, 40))} is not an ID in any form`);
    }
    const query = { n: 1, id: text, form, as };
    return (await this.call(1, (limit) => ask(this.stock.routes, query, limit), options))[0] as string;
  }

  private async call(
    count: number,
    run: (limit: Limit) => Promise<Batch>,
    options: CallOptions = {},
  ): Promise<Batch["ids"]> {
    const { shared, stock } = this;
    const { timeout = shared.options.timeout ?? 10_000, signal } = options;
    if (shared.closed) throw new ClosedError();
    check("timeout", timeout);
    check("count", count, 2 ** 31 - 1, 0);
    if (count === 0) return [];
    const began = performance.now();
    const call = within(shared, timeout, run, signal);
    let [age, error]: [number, unknown] = [0, undefined];
    shared.calls.add(call);
    try {
      const { ids, asked } = await call;
      age = since(asked);
      return ids;
    } catch (e) {
      throw (error = e);
    } finally {
      shared.calls.delete(call);
      const duration = performance.now() - began;
      shared.options.hooks?.call?.({ sequencer: stock.routes.name, count, duration, age, error });
    }
  }
}

/** Takes IDs from several nodes of a firn service. A call goes to a node that works, and to another one if need be. */
export class Client<K extends Kind = "bigint"> extends Sequencer<K> {
  /** Sends nothing, so nodes may be down. Throws a TypeError or RangeError when a URL or an option is wrong. */
  constructor(nodes: readonly string[], options: Options<K> = {}) {
    const { form = "bigint" as K, timeout = 1, prefetch = { count: 1, maxAge: 1 } } = options;
    check("timeout", timeout);
    check("prefetch.maxAge", prefetch.maxAge ?? defaultMaxAge);
    check("prefetch.count", prefetch.count, maxCount);
    if (!Array.isArray(nodes)) {
      throw new TypeError(`the nodes are of type ${typeof nodes}; want a list of URLs, such as ["http://ids-1:8080"]`);
    }
    const urls = nodes.map(parseNode);
    if (nodes.length === 0 || new Set(urls).size < urls.length) {
      throw new TypeError(`the nodes are ${urls.join(", ") || "none"}; want one or more, each once`);
    }
    const clusters = new Clusters();
    super(
      { nodes: urls, options, clusters, ends: new Set(), stocks: new Map(), calls: new Set(), closed: false },
      "",
      form,
    );
  }

  /** Returns the sequencer of a name; "" is the default one. The client keeps state for every name, for ever. */
  sequencer(name: string): Sequencer<K>;
  sequencer<L extends Kind>(name: string, form: L): Sequencer<L>;
  sequencer(name: string, form: Kind = this.kind): Sequencer<Kind> {
    return new Sequencer(this.shared, name, form);
  }

  /** Waits for the calls in flight, then ends all requests. Later calls reject with a ClosedError. */
  async close(): Promise<void> {
    this.shared.closed = true;
    await Promise.allSettled(this.shared.calls);
    for (const end of this.shared.ends) end.abort(new ClosedError());
  }
}

function check(name: string, value: number, most = 2 ** 31 - 1, least = 1): void {
  if (Number.isInteger(value) && value >= least && value <= most) return;
  throw new RangeError(`${name} is ${value}; want a whole number from ${least} to ${most}`);
}

/** Returns the URL with which requests begin. An error does not show what may be a password. */
function parseNode(text: string, i: number): string {
  if (/^https?:\/\/[^/?#@\\]+\/?$/i.test(text)) return new URL(text).origin;
  const wrong = text.includes("@") ? "has a user, for which there is the option token" : `is ${JSON.stringify(text)}`;
  throw new TypeError(`node ${i + 1} ${wrong}; want http or https, a host and a port, such as http://ids-1:8080`);
}
