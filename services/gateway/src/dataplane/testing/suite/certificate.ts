import { generateKeyPairSync, randomBytes, sign } from 'node:crypto';

/** A self-signed certificate for tests, made without any program: the fewest fields that X.509 v3 allows (RFC 5280 §4.1). */

const SEQUENCE = 0x30;
const SET = 0x31;
const INTEGER = 0x02;
const BIT_STRING = 0x03;
const OBJECT_ID = 0x06;
const UTF8_STRING = 0x0c;
const GENERALIZED_TIME = 0x18;
const EXPLICIT_0 = 0xa0;

const ECDSA_WITH_SHA256 = Buffer.from('2a8648ce3d040302', 'hex');
const COMMON_NAME = Buffer.from('550403', 'hex');

/** In the fewest bytes, as DER has it (X.690 §10.1); of a length below 2^16. */
function lengthOf(bytes: number): number[] {
  if (bytes < 0x80) return [bytes];
  return bytes < 0x100 ? [0x81, bytes] : [0x82, bytes >> 8, bytes & 0xff];
}

function der(tag: number, ...contents: Uint8Array[]): Buffer {
  const content = Buffer.concat(contents);
  return Buffer.concat([Buffer.from([tag, ...lengthOf(content.length)]), content]);
}

const nameOf = (commonName: string) =>
  der(
    SEQUENCE,
    der(SET, der(SEQUENCE, der(OBJECT_ID, COMMON_NAME), der(UTF8_STRING, Buffer.from(commonName)))),
  );

export interface Certificate {
  readonly cert: string;
  readonly key: string;
}

export function createCertificate(commonName: string): Certificate {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const algorithm = der(SEQUENCE, der(OBJECT_ID, ECDSA_WITH_SHA256));
  const version3 = der(EXPLICIT_0, der(INTEGER, Buffer.from([2])));
  const serial = der(INTEGER, Buffer.concat([Buffer.from([1]), randomBytes(8)]));
  const validity = der(
    SEQUENCE,
    der(GENERALIZED_TIME, Buffer.from('20200101000000Z')),
    der(GENERALIZED_TIME, Buffer.from('20991231235959Z')),
  );
  const name = nameOf(commonName);
  const spki = publicKey.export({ type: 'spki', format: 'der' });
  const body = der(SEQUENCE, version3, serial, algorithm, name, validity, name, spki);
  const signature = sign('sha256', body, privateKey);
  const whole = der(SEQUENCE, body, algorithm, der(BIT_STRING, Buffer.from([0]), signature));
  return {
    cert: `-----BEGIN CERTIFICATE-----\n${whole.toString('base64')}\n-----END CERTIFICATE-----\n`,
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }) as string,
  };
}
