export { Client, type Sequencer } from "./client.js";
export { encode, type Encoding, MAX_ID, parse } from "./encoding.js";
export { ClosedError, type Code, codes, MixedError, NoAnswerError, NodeError } from "./errors.js";
export { decode, firstId, fromUuid, lastId, type Layout, type Parts, presets, toUuid } from "./layout.js";
export type { CallOptions, Form, Hooks, IdOf, Kind, Options } from "./options.js";
