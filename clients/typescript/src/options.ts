import type { Encoding } from "./encoding.js";
import type { NodeError } from "./errors.js";

/** How an ID is written as text. The client writes the encodings, the nodes the other forms. */
export type Form = Encoding | "prefixed" | "prefixed-decimal" | "prefixed-checked" | "uuid" | "sealed";

/** What IDs are: bigints, or texts in a form. */
export type Kind = "bigint" | Form;
export type IdOf<K extends Kind> = K extends "bigint" ? bigint : string;

/** The settings of a client. All times are in milliseconds. */
export interface Options<K extends Kind = "bigint"> {
  /** What IDs are; the default is "bigint". With "decimal" they are strings, as JSON needs them. */
  form?: K;
  /** Returns the token that a request carries; "": none. It is called for every request. Errors and hooks never show it. */
  token?: () => string | Promise<string>;
  /** How long a call may take that does not say so; the default is 10000. */
  timeout?: number;
  /**
   * Keeps up to `count` IDs of each sequencer in memory, 1 to 100000, none older than `maxAge` (2000 by default), as from its request on. The
   * age counts time in which the machine slept, or lay in a snapshot, as soon as the wall clock shows that.
   */
  prefetch?: { count: number; maxAge?: number | undefined };
  /** Is told what the client does, for metrics and logs. */
  hooks?: Hooks;
  /** Sends requests in the place of the global fetch: for certificates of your own, or a proxy. */
  fetch?: typeof fetch;
}

/** The settings of a call: how long it may take, in milliseconds, and a signal that ends it. */
export type CallOptions = { timeout?: number | undefined; signal?: AbortSignal | undefined };

/** Functions that must be quick, and must not throw. `sequencer` is "" for the default one; durations are milliseconds. */
export interface Hooks {
  /** A request to a node has ended, perhaps after its call. `hedged`: another one of the call had no answer yet. */
  attempt?(event: { node: string; hedged: boolean; error: NodeError | undefined } & Event): void;
  /** A call has ended. `age` is that of the oldest ID, counted from before its request; 0 with an error. */
  call?(event: { age: number; error: unknown } & Event): void;
  /** With prefetch: IDs were fetched, or dropped because they were too old, or a fetch has failed. */
  batch?(event: { sequencer: string; fetched: number; expired: number; error?: unknown }): void;
}

type Event = { sequencer: string; count: number; duration: number };
