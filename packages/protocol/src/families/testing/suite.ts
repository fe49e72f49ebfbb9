import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { parseAccountAddress } from '../../chains.ts';
import { AppError } from '../../errors.ts';
import { LIMITS } from '../../limits.ts';
import { anyCharacter } from '../../testing/characters.ts';
import type { SignatureFamily, SigningContext } from '../family.ts';

/** A key of a family, as tests hold it. */
export interface Signatory {
  readonly address: string;
  /** The bytes of a signature, before they are written as the `signature` field. */
  sign(text: string): Uint8Array;
  encode(signature: Uint8Array): string;
}

export interface FamilySubject {
  readonly name: string;
  readonly family: SignatureFamily;
  /** @param key 32 bytes, valid as a secret key of every curve used here */
  createSignatory(key: Uint8Array): Signatory;
  readonly context?: SigningContext;
  /** Why -> an address that must be refused. */
  readonly badAddresses: Readonly<Record<string, string>>;
  /** Whether an address with one character changed is always refused. */
  readonly checksummed: boolean;
  /** The one text that stands for all spellings of a signature which the family takes as the same. */
  readonly normalise?: (signature: string) => string;
}

const anyText = fc.string({ unit: anyCharacter, maxLength: 400 });
/** Around every border of a length prefix, in bytes. */
const LENGTHS = [0, 1, 127, 128, 252, 253, 255, 256, 65535, 65536];
const RUNS = 25;

/** What strangers may send as a signature: text, or JSON with the fields that the families read. */
const garbage = fc.oneof(
  fc.string({ maxLength: 1200 }),
  fc.json(),
  fc
    .record(
      {
        signature: fc.oneof(fc.base64String({ maxLength: 120 }), fc.jsonValue()),
        publicKey: fc.oneof(
          fc.string({ unit: fc.constantFrom('a', '1', 'e', 'd', 'p', 'k') }),
          fc.jsonValue(),
        ),
        pub_key: fc.oneof(
          fc.record({ type: fc.constant('tendermint/PubKeySecp256k1'), value: fc.base64String() }),
          fc.jsonValue(),
        ),
        data: fc.oneof(
          fc
            .string({ unit: fc.constantFrom(...'0123456789abcdef'), minLength: 128, maxLength: 128 })
            .map((t) => `0x${t}`),
          fc.jsonValue(),
        ),
        curve: fc.constantFrom('sr25519', 'ed25519'),
        signingType: fc.constantFrom('raw', 'micheline', 'other'),
      },
      { requiredKeys: [] },
    )
    .map((value) => JSON.stringify(value)),
);

/** The suite that every signature family passes. */
export function describeFamily(subject: FamilySubject): void {
  const { family, normalise = (signature: string) => signature } = subject;
  const context = subject.context ?? {};
  const one = subject.createSignatory(new Uint8Array(32).fill(0x11));
  const other = subject.createSignatory(new Uint8Array(32).fill(0x22));
  const sign = (text: string) => one.encode(one.sign(text));
  const verify = (text: string, signature: string, sender = one.address) =>
    family.verify(text, signature, sender, context);

  describe(`signatures of ${subject.name}`, () => {
    test('any text that was signed verifies, for its signer only', () => {
      fc.assert(
        fc.property(anyText, (text) => {
          const signature = sign(text);
          assert.equal(verify(text, signature), true);
          assert.equal(verify(text, signature, other.address), false);
        }),
        { numRuns: RUNS },
      );
    });

    test('every length of text', () => {
      for (const length of LENGTHS) {
        const text = '{'.padEnd(length, 'é').slice(0, length);
        const ascii = 'x'.repeat(length);
        assert.equal(verify(text, sign(text)), true, `${length} characters`);
        assert.equal(verify(ascii, sign(ascii)), true, `${length} bytes`);
      }
    });

    test('no other text verifies', () => {
      fc.assert(
        fc.property(
          anyText,
          fc.nat(),
          fc.string({ unit: anyCharacter, minLength: 1, maxLength: 1 }),
          (text, at, char) => {
            const chars = [...text];
            const index = at % (chars.length + 1);
            const changed = chars.toSpliced(index, 1, char).join('');
            const longer = chars.toSpliced(index, 0, char).join('');
            const signature = sign(text);
            for (const wrong of [changed, longer]) {
              assert.equal(verify(wrong, signature), wrong === text);
            }
          },
        ),
        { numRuns: RUNS },
      );
    });

    test('no bit of a signature can change', () => {
      const text = '{"a":1}';
      const good = one.sign(text);
      for (let at = 0; at < good.length; at++) {
        const bad = Uint8Array.from(good);
        bad[at]! ^= 1 << (at % 8);
        assert.equal(verify(text, one.encode(bad)), false, `byte ${at}`);
      }
    });

    test('no other length, nothing constant', () => {
      const good = one.sign('x');
      const bad = [
        new Uint8Array(0),
        good.subarray(1),
        good.subarray(0, -1),
        Uint8Array.of(...good, 0),
        Uint8Array.of(0, ...good),
        new Uint8Array(good.length),
        new Uint8Array(good.length).fill(0xff),
      ];
      for (const signature of bad) assert.equal(verify('x', one.encode(signature)), false);
    });

    test('a signature field has one spelling, or spellings that are known to be the same', () => {
      const good = sign('x');
      const edit = fc.tuple(fc.nat(good.length), fc.nat(2), fc.string({ maxLength: 1 }));
      fc.assert(
        fc.property(edit, ([at, removed, inserted]) => {
          const changed = good.slice(0, at) + inserted + good.slice(at + removed);
          if (verify('x', changed)) assert.equal(normalise(changed), normalise(good));
        }),
        { numRuns: 4 * RUNS },
      );
    });

    test('nothing makes it throw', () => {
      const good = sign('x');
      const anything = fc.string({
        unit: fc.integer({ min: 0, max: 0xffff }).map((code) => String.fromCharCode(code)),
      });
      fc.assert(
        fc.property(
          anything,
          garbage,
          fc.oneof(anything, fc.constant(one.address)),
          (text, signature, sender) => {
            assert.equal(family.verify(text, signature, sender, context), false);
            assert.equal(family.verify(text, good, sender === one.address ? '' : sender, context), false);
            assert.equal(family.verify(text, signature, sender, { timestampMs: Number.NaN }), false);
          },
        ),
        { numRuns: 8 * RUNS },
      );
      for (const value of [undefined, null, 1, {}, []] as unknown as string[]) {
        assert.equal(verify('x', value), false);
      }
    });

    test('a field over the limit is not read', () => {
      const good = sign('x');
      assert.equal(verify('x', good.padEnd(LIMITS.signatureChars + 1)), false);
      assert.equal(verify('x', good.padEnd(LIMITS.signatureChars + 1, '0')), false);
    });
  });

  describe(`addresses of ${subject.name}`, () => {
    test('a good one is kept as it is', () => {
      for (const { address } of [one, other]) {
        assert.equal(family.parseAddress(address), address);
        assert.equal(parseAccountAddress(address), address);
      }
    });

    for (const [why, address] of Object.entries(subject.badAddresses)) {
      test(`refused: ${why}`, () => {
        assert.throws(() => family.parseAddress(address), { code: 'INVALID_ADDRESS' });
        assert.equal(verify('x', sign('x'), address), false);
      });
    }

    test('other spellings, cuts and additions are refused, or are another address where none is checked', () => {
      const { address } = one;
      const changed = [
        '',
        ` ${address}`,
        `${address} `,
        `${address}\n`,
        address.slice(1),
        address.slice(0, -1),
        `${address}0`,
        `${address}${address}`,
        address.repeat(100),
        address.toUpperCase(),
        `\u200b${address}`,
      ];
      for (const text of changed) {
        try {
          const parsed = family.parseAddress(text);
          assert.ok(!subject.checksummed && (parsed === text || parsed === address), text);
        } catch (error) {
          assert.ok(error instanceof AppError && error.code === 'INVALID_ADDRESS', String(error));
        }
      }
    });

    test('garbage gives INVALID_ADDRESS and nothing else; what is taken is its own one spelling', () => {
      fc.assert(
        fc.property(fc.string(), (text) => {
          try {
            const address = family.parseAddress(text);
            assert.equal(family.parseAddress(address), address);
          } catch (error) {
            assert.ok(error instanceof AppError && error.code === 'INVALID_ADDRESS', String(error));
          }
        }),
        { numRuns: 8 * RUNS },
      );
    });

    if (subject.checksummed) {
      test('no character can change', () => {
        const { address } = one;
        for (let at = 0; at < address.length; at++) {
          const char = address[at] === 'q' ? 'p' : 'q';
          const changed = address.slice(0, at) + char + address.slice(at + 1);
          assert.throws(() => family.parseAddress(changed), { code: 'INVALID_ADDRESS' }, changed);
        }
      });
    }
  });
}
