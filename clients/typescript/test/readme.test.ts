import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const path = (name: string) => fileURLToPath(new URL(`../${name}`, import.meta.url));

test("the programs of the README compile, each alone", () => {
  const blocks = readFileSync(path("README.md"), "utf8").matchAll(/^```ts\n([^]*?)^```$/gm);
  mkdirSync(path("build/readme"), { recursive: true });
  let n = 0;
  for (const [, block = ""] of blocks) {
    const client = block.includes("{ Client") ? "" : 'import { Client } from "firn-id";\n';
    writeFileSync(path(`build/readme/${++n}.ts`), `${client}${block}export {};\n`);
  }
  assert.ok(n >= 6);
  const options = ["--noEmit", "--strict", "--target", "ES2022", "--module", "NodeNext", "--types", "node"];
  const files = Array.from({ length: n }, (_, i) => path(`build/readme/${i + 1}.ts`));
  execFileSync(path("node_modules/.bin/tsc"), [...options, ...files], { cwd: path("."), stdio: "inherit" });
});

test("the client imports nothing but its own files, and has at most 800 lines that are not blank", () => {
  const files = readdirSync(path("src"));
  const texts = files.map((name) => readFileSync(path(`src/${name}`), "utf8"));
  for (const text of texts) {
    for (const [, from = ""] of text.matchAll(/\bfrom "(.*)"/g))
      assert.ok(files.includes(from.replace(/^\.\/(.*)\.js$/, "$1.ts")), from);
    assert.doesNotMatch(text, /\bimport\(|\brequire\(|\b(process|Buffer|Deno|Bun)\b/);
  }
  const lines = texts.join("").split(/\n+/).length - 1;
  assert.ok(lines <= 800, `${lines}`);
});
