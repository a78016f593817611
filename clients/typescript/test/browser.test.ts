import assert from "node:assert/strict";
import { execFile, execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { MAX_ID } from "../dist/index.js";

const page = `<!doctype html><pre></pre><script type="module">
  import { Client, decode } from "/dist/index.js";
  const client = new Client([location.origin], { timeout: 100_000 });
  const ids = await client.take(3);
  const text = await client.sequencer("orders", "base62").next();
  const refused = await client.sequencer("nothing").next().catch((error) => error.message);
  await client.close();
  const lines = [ids.join(" "), text, refused, decode(ids[0], "discord").time.toISOString()];
  document.querySelector("pre").textContent = lines.join("\\n");
</script>`;

function chromium(): boolean {
  try {
    execFileSync("chromium", ["--version"], { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
}

test("it runs in a browser", { skip: !chromium() && "chromium is not installed" }, async () => {
  const server = createServer((request, response) => {
    const { pathname } = new URL(request.url ?? "", "http://localhost");
    if (pathname === "/") {
      response.setHeader("content-type", "text/html").end(page);
    } else if (pathname.startsWith("/dist/")) {
      const file = readFileSync(new URL(`..${pathname}`, import.meta.url));
      response.setHeader("content-type", "text/javascript").end(file);
    } else if (pathname.includes("nothing")) {
      response.writeHead(404).end('{"error":{"code":"unknown_sequencer","message":"no sequencer is named nothing"}}');
    } else {
      const ids = pathname.includes("orders") ? [MAX_ID] : [175928847299117063n, 175928847299117064n, MAX_ID];
      const bytes = new BigUint64Array(ids);
      response.setHeader("content-type", "application/octet-stream").end(Buffer.from(bytes.buffer).swap64());
    }
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const home = mkdtempSync(join(tmpdir(), "firn-chromium-"));
  try {
    const flags = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", `--user-data-dir=${home}`];
    const shows = ["--virtual-time-budget=20000", "--dump-dom", `${origin}/`];
    const { stdout } = await promisify(execFile)("chromium", [...flags, ...shows], { timeout: 60_000 });
    assert.deepEqual(/<pre>([^]*)<\/pre>/.exec(stdout)?.[1]?.split("\n"), [
      "175928847299117063 175928847299117064 9223372036854775807",
      "AzL8n0Y58m7",
      `${origin} answers 404: unknown_sequencer: no sequencer is named nothing`,
      "2016-04-30T11:18:25.796Z",
    ]);
  } finally {
    server.closeAllConnections();
    server.close();
    rmSync(home, { recursive: true, force: true });
  }
});
