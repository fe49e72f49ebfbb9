// The diagnostic program: what `GET /status/check/fastapi` calls, path by path. Every node has it.
let starts = 0;
const cache = new Map();
starts++;

const json = (value, status = 200) => Response.json(value, { status });

const PATHS = {
  '/': () => json({ Example: 'example_fastapi' }),
  '/environ': () => json({ ...process.env }),
  '/lifespan': () => json({ Lifespan: starts === 1 }),
  '/cache/keys': () => json([...cache.keys()]),
  '/raise': () => {
    throw new Error('raised on purpose, to see the traceback');
  },
};

export default {
  async fetch(request) {
    const { pathname } = new URL(request.url);
    const [, what, action, key, value] = pathname.split('/');
    if (what === 'cache' && action === 'set') return json(cache.set(key, value).has(key));
    if (what === 'cache' && action === 'get') return json(cache.get(key) ?? null);
    const answer = PATHS[pathname];
    return answer ? answer() : json({ error: 'there is no such check' }, 404);
  },
};
