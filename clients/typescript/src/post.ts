import { NodeError } from "./errors.js";
import type { Routes } from "./routes.js";

/** What a node gives: numbers, or texts in a form that nodes write. `leaving`: it closes the connection. */
export type Answer = { ids: (bigint | string)[]; leaving: boolean };

const packed = "application/octet-stream"; // 8 bytes for each ID, big-endian

/** What to ask for: n IDs, 1 to 100000, or an ID, in the form `as`, converted to a form. */
export type Query = { n: number; id?: string; form?: string; as?: string | undefined };

/** Sends one request. Never rejects. */
export async function post(routes: Routes, node: string, query: Query, signal: AbortSignal) {
  const { path, shared } = routes;
  const { n, id, form = routes.form, as } = query;
  const parameters = [n > 1 && `count=${n}`, form && `form=${form}`, as && `as=${as}`].filter(Boolean).join("&");
  const url = `${node}${path}/${id ? `ids/${encodeURIComponent(id)}` : n > 1 ? "ids" : "id"}${parameters && "?"}${parameters}`;
  const method = id ? "GET" : "POST";
  const headers = new Headers({ accept: form ? "application/json" : packed });
  try {
    const token = await shared.options.token?.();
    if (token && !/^[!-~]+$/.test(token)) throw new Error("the token has characters that no header can have");
    if (token) headers.set("authorization", `Bearer ${token}`);
    if (!id && routes.seen.node !== node && routes.seen.id > 0n) headers.set("firn-after", `${routes.seen.id}`);
    const answer = await (shared.options.fetch ?? fetch)(url, { method, headers, redirect: "error", signal });
    const mixed = shared.clusters.take(node, answer.headers.get("firn-cluster") ?? "");
    if (mixed) {
      await answer.body?.cancel();
      return mixed;
    }
    if (answer.status !== 200) return await readError(node, answer);
    const body = await read(answer, form ? 4096 + n * 100 : n * 8); // in JSON each ID is there twice
    const type = answer.headers.get("content-type");
    if (!form && type !== packed) throw new Error(`wrong answer: its type is ${type}; want ${packed}`);
    const ids = readIds(body, form !== "");
    if (ids.length !== n || new Set(ids).size !== n) throw new Error(`wrong answer: want ${n} different IDs above 0`);
    for (const id of ids) if (typeof id === "bigint" && id > routes.seen.id) routes.seen = { id, node };
    return { ids, leaving: answer.headers.get("connection") === "close" } satisfies Answer;
  } catch (error) {
    return new NodeError(node, error);
  }
}

function readIds(body: Uint8Array, json: boolean): (bigint | string)[] {
  if (json) {
    const {
      id,
      text = id,
      ids = [text],
    } = JSON.parse(new TextDecoder().decode(body)) as Record<"id" | "text", unknown> & {
      ids?: unknown[];
    };
    return ids.filter((text) => typeof text === "string");
  }
  const view = new DataView(body.buffer);
  return Array.from({ length: body.length / 8 }, (_, i) => view.getBigInt64(i * 8)).filter((id) => id > 0n);
}

async function readError(node: string, answer: Response): Promise<NodeError> {
  const seconds = /^\d{1,9}$/.exec(answer.headers.get("retry-after") ?? "")?.[0] ?? 0;
  const body = read(answer, 16_384).then((bytes) => JSON.parse(new TextDecoder().decode(bytes)));
  const said = await body.then((json) => json?.error ?? {}).catch(() => ({})); // not of a firn node
  const [code, message] = [said.code, said.message].map((text) => String(text ?? "").slice(0, 1000));
  return new NodeError(node, message, answer.status, code, Number(seconds) * 1000);
}

/** Reads a body of at most limit bytes. */
async function read(answer: Response, limit: number): Promise<Uint8Array> {
  const all = new Uint8Array(limit);
  let length = 0;
  for (const reader = answer.body!.getReader(); ;) {
    const { done, value } = await reader.read();
    if (done) return all.subarray(0, length);
    if (length + value.length > limit) {
      await reader.cancel();
      throw new Error(`wrong answer: more than ${limit} bytes`);
    }
    all.set(value, length);
    length += value.length;
  }
}
