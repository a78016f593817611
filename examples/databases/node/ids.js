// nextID returns an ID as a string. JavaScript would lose the last digits of a number.
export async function nextID() {
  const answer = await fetch(`${process.env.FIRN_URL}/api/v1/id?ids=string`, { method: 'POST' });
  if (!answer.ok) throw new Error(`no ID: ${answer.status} ${await answer.text()}`);
  return (await answer.json()).id;
}

export const pause = (ms) => new Promise((done) => setTimeout(done, ms));

export const show = (what, orders) => console.log(`${what}:`, ...orders.map((o) => o.item));
