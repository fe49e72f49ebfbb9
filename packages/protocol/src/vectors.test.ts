import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, test } from 'node:test';
import { p256 } from '@noble/curves/nist.js';
import { AggregateContent } from './content/aggregate.ts';
import { ForgetContent } from './content/forget.ts';
import {
  Firewall,
  InstanceContent,
  InstanceControlContent,
  InstanceUpdateContent,
} from './content/instance.ts';
import { IpfsPinContent } from './content/ipfs-pin.ts';
import { PostContent } from './content/post.ts';
import { ProgramContent } from './content/program.ts';
import { StoreContent } from './content/store.ts';
import { sha256Hex } from './hash.ts';
import { bytesToHex } from './hex.ts';
import { hostnameOf, prefixOfHostname } from './hostname.ts';
import { instanceAddress } from './instance-address.ts';
import { ADDRESS, sign } from './network-form/testing/setup.ts';
import { verifyOwnerPass } from './owner-pass.ts';
import { verifyUpload } from './upload.ts';

/** What the page for authors of clients (docs/wire-forms.md) says beside its envelope, made again by the code. */

const page = readFileSync(new URL('../../../docs/wire-forms.md', import.meta.url), 'utf8');

/** @param heading with its number signs */
function sectionOf(heading: string): string {
  const start = page.indexOf(`\n${heading}\n`);
  assert.ok(start >= 0, heading);
  const [, level] = /^(#+) /.exec(heading)!;
  const body = page.slice(start + heading.length + 2);
  const end = body.search(new RegExp(`^#{1,${level!.length}} `, 'm'));
  return end < 0 ? body : body.slice(0, end);
}

const fenced = (section: string, language: string): string[] =>
  new RegExp(`\`\`\`${language}\\n([^]*?)\\n\`\`\``).exec(section)![1]!.split('\n');

interface Schema {
  readonly properties: Readonly<Record<string, object>>;
  readonly required?: readonly string[];
}

const CONTENTS: Readonly<Record<string, object>> = {
  POST: PostContent,
  AGGREGATE: AggregateContent,
  STORE: StoreContent,
  FORGET: ForgetContent,
  INSTANCE: InstanceContent,
  INSTANCE_UPDATE: InstanceUpdateContent,
  INSTANCE_CONTROL: InstanceControlContent,
  PROGRAM: ProgramContent,
  IPFS_PIN: IpfsPinContent,
};
/** Of these the page tells the form, which says more than a length. */
const WITHOUT_LENGTH = new Set(['address', 'firewall', 'image', 'runtime', 'ssh_key', 'content_type']);
const BOUNDS = new Set(['minimum', 'maximum', 'maxLength', 'maxItems']);

const boundsOf = (value: unknown): number[] =>
  typeof value !== 'object' || value === null
    ? []
    : Object.entries(value).flatMap(([name, one]) =>
        BOUNDS.has(name) && typeof one === 'number' && one > 0 ? [one] : boundsOf(one),
      );

describe('the page for authors of clients', () => {
  test('has every field of each content of the envelope, whether it may be left out, and its limits', () => {
    const section = sectionOf('## Envelope contents');
    const sample = { properties: { a: { maxLength: 7 } }, required: ['a'] };
    assert.deepEqual(boundsOf(sample), [7]);
    const told = new Set<string>();
    for (const [type, content] of Object.entries(CONTENTS)) {
      const row = section.split('\n').find((line) => line.startsWith(`| ${type} |`)) ?? '';
      const { properties, required = [] } = content as Schema;
      for (const [name, schema] of Object.entries(properties)) {
        const shown = `\`${name}${required.includes(name) ? '' : '?'}\``;
        assert.ok(row.includes(shown), `${type}: ${shown}`);
        const bounds = WITHOUT_LENGTH.has(name) ? [] : boundsOf(schema);
        // A field that is the same in several contents has its limits where it comes first.
        const isTold = told.has(`${name} ${bounds}`);
        told.add(`${name} ${bounds}`);
        for (const bound of isTold ? [] : bounds)
          assert.match(
            row,
            new RegExp(`(?<![\\d,])${bound.toLocaleString('en-US')}(?![\\d,]\\d)`),
            `${type}.${name}`,
          );
      }
      for (const [, optional] of row.matchAll(/`(\w+)\?`/g))
        assert.ok(Object.hasOwn(properties, optional!), `${type} has no ${optional}`);
    }
    const { properties, required = [] } = Firewall as unknown as Schema;
    for (const name of Object.keys(properties))
      assert.ok(section.includes(`\`${name}${required.includes(name) ? '' : '?'}\``), name);
  });

  test('has an upload that is right', () => {
    const section = sectionOf('## Uploads');
    const fileHash = sha256Hex('a file\n');
    const signature = sign(fileHash);
    const { itemHash } = verifyUpload(fileHash, { address: ADDRESS, signature });
    for (const value of [fileHash, signature, itemHash]) assert.ok(section.includes(`\`${value}\``), value);
  });

  test('has a request of an owner that is right, with both of its signatures', async () => {
    const section = sectionOf('### A request to compare with');
    const [keyText = '', operationText = ''] = fenced(section, 'json');
    const headers = new Map(fenced(section, 'http').map((line) => line.split(': ', 2) as [string, string]));
    const [secret, hexOf] = [
      new Uint8Array(32).fill(0x22),
      (text: string) => Buffer.from(text).toString('hex'),
    ];
    const { pubkey } = JSON.parse(keyText);
    const point = Buffer.from(p256.getPublicKey(secret, false)).subarray(1);
    assert.deepEqual(
      [pubkey.x, pubkey.y],
      [0, 32].map((at) => point.subarray(at, at + 32).toString('base64url')),
    );
    const operationSignature = bytesToHex(p256.sign(Buffer.from(operationText), secret, { lowS: false }));
    const [publicKey, operation] = [
      JSON.stringify({ payload: hexOf(keyText), signature: sign(keyText) }),
      JSON.stringify({ payload: hexOf(operationText), signature: operationSignature }),
    ];
    assert.deepEqual(
      headers,
      new Map([
        ['X-SignedPubKey', publicKey],
        ['X-SignedOperation', operation],
      ]),
    );
    const { time, method, path, domain } = JSON.parse(operationText);
    const expected = { method, path, domain, node: 'a'.repeat(64), query: '', hasBody: false };
    const nowMs = Date.parse(time);
    const verified = await verifyOwnerPass({ publicKey, operation }, { ...expected, nowMs });
    assert.equal(verified.address, ADDRESS);
  });

  test('has a host name and an address that are right', () => {
    const section = sectionOf('## Names and addresses of instances');
    const [, id = ''] = /`([0-9a-f]{64})`/.exec(section) ?? [];
    const [, prefix = ''] = /`([0-9a-f:]+\/64)`/.exec(section) ?? [];
    const bits = prefixOfHostname(hostnameOf(id));
    const numbers = [33n, 22n, 11n, 0n].map((shift) => (bits >> shift) & 2047n);
    const { network, guest } = instanceAddress(prefix, id);
    const said = [
      `\`${id.slice(0, 11)}\`: ${numbers.join(', ')} `,
      `\`${hostnameOf(id)}\``,
      `\`${network}\``,
      `\`${guest}\``,
    ];
    for (const one of said) assert.ok(section.includes(one), one);
  });
});
