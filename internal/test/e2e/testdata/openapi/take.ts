// Takes IDs with each client that was generated, and prints them: a line for each, with the generator, a tab and the ID.
// It reads them where docs/clients.md says so. The arguments are the node's address, and what JSON has IDs as there.
import createClient from "openapi-fetch";
import { takeId, takeIds } from "./hey-api";
import { client } from "./hey-api/client.gen";
import type { paths } from "./openapi-fetch";
import { type GivenID, type GivenIDs, takeID, takeIDs } from "./orval";
import { Api } from "./swagger/firn";

const [baseUrl, type] = process.argv.slice(2);

// The types have numbers, which nodes send by default.
type One = { id: number; id_str: string };
type Many = { ids: number[]; ids_str: string[] };

// take takes 1000 IDs one by one, and 4000 by the thousand.
async function take(generator: string, one: () => Promise<One>, many: (count: number) => Promise<Many>) {
  const print = (ids: string[]) => process.stdout.write(ids.map((id) => `${generator}\t${id}\n`).join(""));
  for (let i = 0; i < 20; i++) {
    const some = await Promise.all(Array.from({ length: 50 }, one));
    some.forEach(({ id }) => expect(generator, id));
    print(some.map(({ id_str }) => id_str));
  }
  for (let i = 0; i < 4; i++) {
    const { ids, ids_str } = await many(1000);
    ids.forEach((id) => expect(generator, id));
    print(ids_str);
  }
}

function expect(generator: string, id: unknown) {
  if (typeof id !== type) throw new Error(`${generator} gets the ID ${id}, a ${typeof id}; want a ${type}`);
}

// data is what came, unless the call failed.
function data<T>({ data, error }: { data?: T; error?: unknown }): T {
  if (!data) throw new Error(JSON.stringify(error));
  return data;
}

async function main() {
  const typed = createClient<paths, "application/json">({ baseUrl });
  await take(
    "openapi-typescript",
    async () => data(await typed.POST("/api/v1/id")),
    async (count) => data(await typed.POST("/api/v1/ids", { params: { query: { count } } })),
  );

  client.setConfig({ baseUrl });
  await take("hey-api", async () => data(await takeId()), async (count) => data(await takeIds({ query: { count } })));

  const { api } = new Api({ baseUrl });
  await take("swagger-typescript-api", async () => data(await api.takeId()), async (count) => data(await api.takeIDs({ count })));

  const plain = globalThis.fetch; // orval's client asks where the page came from
  globalThis.fetch = (path, init) => plain(`${baseUrl}${path}`, init);
  await take(
    "orval",
    async () => (await takeID()).data as GivenID,
    async (count) => (await takeIDs({ count })).data as GivenIDs,
  );
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
