// Drives a client for the conformance suite; clients/conformance/README.md has the protocol.
import { AsyncLocalStorage } from "node:async_hooks";
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { Agent, fetch as undiciFetch } from "undici";
import {
  Client,
  ClosedError,
  decode,
  type Form,
  MixedError,
  NoAnswerError,
  NodeError,
  type Options,
  parse,
} from "../dist/index.js";

interface Request {
  n: number;
  do: "next" | "fill" | "convert" | "decode" | "run" | "hooks" | "close";
  sequencer?: string;
  form?: Form | "";
  as?: Form;
  count?: number;
  id?: string;
  layout?: string;
  callers?: number;
  calls?: number;
}

interface Opening {
  nodes: string[];
  token?: string;
  ca?: string;
  prefetch?: { count: number; max_age_ms?: number };
  timeout_ms?: number;
}

const counts = { attempts: 0, hedged: 0, fetched: 0, expired: 0 };
const call = new AsyncLocalStorage<{ age: number }>();

function open({ nodes, token, ca, prefetch, timeout_ms }: Opening): Client<"decimal"> {
  const options: Options<"decimal"> = {
    form: "decimal",
    hooks: {
      attempt: ({ hedged }) => {
        counts.attempts++;
        if (hedged) counts.hedged++;
      },
      batch: ({ fetched, expired }) => {
        counts.fetched += fetched;
        counts.expired += expired;
      },
      call: ({ age }) => {
        const store = call.getStore();
        if (store) store.age = age;
      },
    },
  };
  if (token !== undefined) options.token = () => token;
  if (timeout_ms !== undefined) options.timeout = timeout_ms;
  if (prefetch) options.prefetch = { count: prefetch.count, maxAge: prefetch.max_age_ms };
  if (ca !== undefined) {
    const dispatcher = new Agent({ connect: { ca: readFileSync(ca, "utf8") } });
    options.fetch = ((url: string, init: object) =>
      undiciFetch(url, { ...init, dispatcher })) as unknown as typeof fetch;
  }
  return new Client(nodes, options);
}

function explain(error: unknown): object {
  if (error instanceof MixedError) return { kind: "mixed", message: error.message };
  if (error instanceof NodeError) {
    const { code, status, retryAfter, message } = error;
    return { kind: "refused", code, status, retry_after_ms: retryAfter, message };
  }
  let kind = "invalid";
  if (error instanceof NoAnswerError) kind = "no_answer";
  else if (error instanceof ClosedError) kind = "closed";
  else if (!(error instanceof RangeError || error instanceof TypeError || error instanceof SyntaxError))
    kind = "unexpected";
  return { kind, message: String(error) };
}

async function answer(client: Client<"decimal">, request: Request): Promise<object> {
  const sequencer = client.sequencer(request.sequencer ?? "", request.form || "decimal");
  switch (request.do) {
    case "next":
    case "fill":
      return call.run({ age: 0 }, async () => {
        const ids = request.do === "next" ? [await sequencer.next()] : await sequencer.take(request.count ?? 0);
        return { ids, age_ms: call.getStore()?.age };
      });
    case "convert":
      return { ids: [await sequencer.convert(request.id ?? "", request.form as Form, { as: request.as as Form })] };
    case "decode": {
      const { time, tick, datacenter, node, nodeId, sequence } = decode(
        parse(request.id ?? "", "decimal"),
        request.layout,
      );
      return { parts: { unix_ms: time.getTime(), tick: Number(tick), datacenter, node, node_id: nodeId, sequence } };
    }
    case "run": {
      const ids: string[] = [];
      let failed = 0;
      const caller = async () => {
        for (let i = 0; i < (request.calls ?? 0); i++) {
          await sequencer.next().then(
            (id) => ids.push(id),
            (error: unknown) => {
              failed++;
              console.error(error);
            },
          );
        }
      };
      await Promise.all(Array.from({ length: request.callers ?? 0 }, caller));
      return { ids, failed };
    }
    case "hooks":
      return counts;
    case "close":
      await client.close();
      return { closed: true };
  }
}

function say(line: object): void {
  process.stdout.write(`${JSON.stringify(line)}\n`);
}

let client: Client<"decimal"> | undefined;
const input = createInterface({ input: process.stdin });
for await (const line of input) {
  if (!client) {
    try {
      client = open(JSON.parse(line) as Opening);
      say({ ready: true });
    } catch (error) {
      say({ error: explain(error) });
    }
    continue;
  }
  const request = JSON.parse(line) as Request;
  const { n } = request;
  void answer(client, request)
    .then(
      (result) => say({ n, ...result }),
      (error: unknown) => say({ n, error: explain(error) }),
    )
    .then(() => request.do === "close" && input.close());
}
await client?.close();
