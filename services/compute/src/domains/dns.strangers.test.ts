import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createReach } from '@skerry/kit';
import {
  answerNames,
  DNS_TYPES,
  type NameAnswer,
  type Question,
  recordOf,
  SERVFAIL,
} from '@skerry/kit/testing/dns';
import { readProof } from './dns.ts';

const OWNER = `0x${'1'.repeat(40)}`;
const ZONE = 'zone.test';
const UNKNOWN = { cname: 'unknown', ownerProof: 'unknown' };
const NOTHING: NameAnswer = {};
const ON_LOOPBACK = { host: '127.0.0.1', port: 0 };
/** Where the name server of a domain is asked: at the port of name servers, which only root opens. */
const SERVER = '127.77.0.1';
const NAME_PORT = 53;

/** Says of a domain that its name server is `ns` in it, at an address. */
const serverAt =
  (domain: string, address: string) =>
  ({ name, type }: Question): NameAnswer => {
    if (type === DNS_TYPES.NS && name === domain) return { records: [recordOf.name(`ns.${domain}`)] };
    return type === DNS_TYPES.A && name === `ns.${domain}` ? { records: [recordOf.A(address)] } : NOTHING;
  };

const rulesOf = (resolver: { readonly address: string }, allowPrivate = true) => ({
  zone: ZONE,
  resolvers: [resolver.address],
  mayReach: createReach(allowPrivate),
});

test('H3: a name server that a stranger’s domain puts on this machine is not asked', async () => {
  using resolver = await answerNames(ON_LOOPBACK, serverAt('example.test', '127.0.0.1'));
  const rules = rulesOf(resolver, false);
  const judged: string[] = [];
  const proof = await readProof(
    'www.example.test',
    OWNER,
    {
      ...rules,
      mayReach(address) {
        judged.push(address);
        return rules.mayReach(address);
      },
    },
    new AbortController().signal,
  );
  assert.deepEqual([proof, judged], [UNKNOWN, ['127.0.0.1']]);
});

test('servers that do not answer are no proof that a name was given up, whatever those above them say', async () => {
  assert.equal(process.geteuid?.(), 0, 'this test needs root');
  const name = 'www.shop.example.test';
  const { signal } = new AbortController();
  let isAway = true;
  const above = serverAt('example.test', SERVER);
  using resolver = await answerNames(ON_LOOPBACK, (question) => {
    const isBelow = question.name.endsWith('shop.example.test') && question.type === DNS_TYPES.NS;
    return isBelow && isAway ? { code: SERVFAIL } : above(question);
  });
  const records = new Map<number, string>();
  using _server = await answerNames({ host: SERVER, port: NAME_PORT }, ({ type }) => {
    const data = records.get(type);
    if (data === undefined) return NOTHING;
    return { records: [type === DNS_TYPES.TXT ? recordOf.TXT(data) : recordOf.name(data)] };
  });
  const ask = () => readProof(name, OWNER, rulesOf(resolver), signal);
  assert.deepEqual(await ask(), UNKNOWN);
  // What they do have was given by whoever the name is below.
  records.set(DNS_TYPES.CNAME, `${name}.${ZONE}`).set(DNS_TYPES.TXT, OWNER);
  assert.deepEqual(await ask(), { cname: true, ownerProof: true });
  records.clear();
  isAway = false;
  assert.deepEqual(await ask(), { cname: false, ownerProof: false });
});

test('a proof ends with its signal, however many labels a name has and however silent its servers are', async () => {
  const stop = new AbortController();
  let asked = 0;
  using resolver = await answerNames(ON_LOOPBACK, () => {
    asked++;
    stop.abort();
    return undefined;
  });
  const name = `${'a.'.repeat(100)}example.test`;
  assert.deepEqual(await readProof(name, OWNER, rulesOf(resolver), stop.signal), UNKNOWN);
  assert.equal(asked, 1);
});
