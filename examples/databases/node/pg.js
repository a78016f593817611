// IDs of firn as primary keys in PostgreSQL, with pg. The functions firn_first and firn_last are those of
// firn gen sql --dialect postgres.
import pg from 'pg';
import { nextID, pause, show } from './ids.js';

// Without this line an int8 is a string, which is exact as well, but "9" > "10".
pg.types.setTypeParser(pg.types.builtins.INT8, BigInt);

const db = new pg.Client(); // where PGHOST, PGUSER and PGDATABASE say
await db.connect();
await db.query('CREATE TABLE orders (id bigint PRIMARY KEY, item text NOT NULL)');

async function insert(...items) {
  for (const item of items) {
    await db.query('INSERT INTO orders (id, item) VALUES ($1, $2)', [BigInt(await nextID()), item]);
  }
}
await insert('tea', 'milk', 'sugar');
await pause(50);
const since = new Date();
await pause(50);
await insert('bread', 'butter', 'jam');

// The orders of a time are a range of the primary key.
const { rows: recent } = await db.query(
  'SELECT * FROM orders WHERE id BETWEEN firn_first($1) AND firn_last($2) ORDER BY id',
  [since, new Date()],
);
show('since', recent);

// The next page begins after the last order of this one.
for (let after = 0n; ; ) {
  const { rows: page } = await db.query('SELECT * FROM orders WHERE id > $1 ORDER BY id LIMIT 2', [after]);
  if (page.length === 0) break;
  show('page', page);
  after = page.at(-1).id;
}

// Out to a browser, and back. JSON has no bigint, and a number would lose digits: the ID goes as a string.
const out = JSON.stringify(recent[0], (_, value) => (typeof value === 'bigint' ? String(value) : value));
console.log('json:', out);
const back = BigInt(JSON.parse(out).id);
const { rows: found } = await db.query('SELECT * FROM orders WHERE id = $1', [back]);
show('back', found);

await db.end();
