// IDs of firn as primary keys in PostgreSQL, with TypeORM. The functions firn_first and firn_last are those of
// firn gen sql --dialect postgres.
import { DataSource, EntitySchema, MoreThan, Raw } from 'typeorm';
import { nextID, pause, show } from './ids.js';

// TypeORM keeps a bigint as a string, which is exact, and goes out in JSON as it is. With decorators:
//   @PrimaryColumn({ type: 'bigint' }) id: string;
const Order = new EntitySchema({
  name: 'orders',
  columns: { id: { type: 'bigint', primary: true }, item: { type: 'text' } },
});

const db = await new DataSource({
  type: 'postgres',
  host: process.env.PGHOST,
  port: Number(process.env.PGPORT ?? 5432),
  username: process.env.PGUSER,
  database: process.env.PGDATABASE,
  entities: [Order],
  synchronize: true, // creates the table
}).initialize();
const orders = db.getRepository(Order);

async function insert(...items) {
  for (const item of items) await orders.insert({ id: await nextID(), item });
}
await insert('tea', 'milk', 'sugar');
await pause(50);
const since = new Date();
await pause(50);
await insert('bread', 'butter', 'jam');

// The orders of a time are a range of the primary key.
const recent = await orders.find({
  where: { id: Raw((id) => `${id} BETWEEN firn_first(:since) AND firn_last(:now)`, { since, now: new Date() }) },
  order: { id: 'ASC' },
});
show('since', recent);

// The next page begins after the last order of this one.
for (let after = '0'; ; ) {
  const page = await orders.find({ where: { id: MoreThan(after) }, order: { id: 'ASC' }, take: 2 });
  if (page.length === 0) break;
  show('page', page);
  after = page.at(-1).id;
}

// Out to a browser, and back.
const out = JSON.stringify(recent[0]);
console.log('json:', out);
show('back', await orders.findBy({ id: JSON.parse(out).id }));

await db.destroy();
