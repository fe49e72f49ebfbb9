import { createHash } from 'node:crypto';
import type { BlockId, ReadBlock } from '@skerry/kit/unixfs';
import { AppError } from '@skerry/protocol';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { CID } from 'multiformats/cid';
import { encodeCar, encodeCarHeader } from '../../store/ipfs/car/encode.ts';
import { blocksOfPath, selectBlocks } from '../../store/ipfs/car/select.ts';
import { streamOf } from '../../store/ipfs/idle.ts';
import type { IpfsFiles } from '../../store/ipfs/ipfs-files.ts';
import { closing } from '../shares/closing.ts';
import { decideRead } from '../storage/storage-conditions.ts';
import type { Asked } from './asked.ts';

/** What its name says for ever. */
export const IMMUTABLE = 'public, max-age=31536000, immutable';
const RAW_TYPE = 'application/vnd.ipld.raw';
const CAR_TYPE = 'application/vnd.ipld.car; version=1; order=dfs; dups=n';

/** What is read: a CID, and the path below it. */
export interface GatewayPath {
  readonly id: BlockId;
  readonly segments: readonly string[];
}

export const contentPathOf = ({ id, segments }: GatewayPath) =>
  `/ipfs/${[id.text, ...segments.map(encodeURIComponent)].join('/')}`;

/** A name that a caller gave goes encoded alone (RFC 6266, RFC 8187). */
const attachment = (given: string | undefined, usual: string) =>
  given === undefined
    ? `attachment; filename="${usual}"`
    : `attachment; filename*=UTF-8''${encodeURIComponent(given).replace(/['()*]/g, (c) => `%${c.charCodeAt(0).toString(16)}`)}`;

interface Sent {
  readonly path: GatewayPath;
  readonly contentType: string;
  /** Without `W/`. */
  readonly etag: string;
  readonly fileName: string;
}

/** Sends the head that all forms share. @returns whether the caller already has it, which is answered then */
function sendHead(
  { path, contentType, etag, fileName }: Sent,
  { method, headers, query }: FastifyRequest,
  reply: FastifyReply,
): boolean {
  const { format, filename } = query as { readonly format?: string; readonly filename?: string };
  const extension = contentType === RAW_TYPE ? 'raw' : 'car';
  reply.headers({
    etag: extension === 'car' ? `W/${etag}` : etag,
    'cache-control': IMMUTABLE,
    'accept-ranges': 'none',
    'x-content-type-options': 'nosniff',
    'x-ipfs-path': contentPathOf(path),
    'content-disposition': attachment(filename, fileName),
    ...(format === undefined ? { 'content-location': `${contentPathOf(path)}?format=${extension}` } : {}),
  });
  const decision = decideRead({ method, ifNoneMatch: headers['if-none-match'] }, etag, 0);
  if (decision.kind === 'not modified') return true;
  reply.header('content-type', contentType);
  return false;
}

/** One block, from what is kept here alone. */
export async function sendBlock(
  ipfs: Pick<IpfsFiles, 'block'>,
  path: GatewayPath,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const { id, segments } = path;
  if (segments.length > 0)
    throw new AppError('INVALID_PARAMETERS', 'a block is named by its CID; format=car takes a path');
  const bytes = await ipfs.block(id, closing(reply));
  const etag = `"${id.text}.raw"`;
  const sent = { path, contentType: RAW_TYPE, etag, fileName: `${id.text}.bin` };
  if (sendHead(sent, request, reply)) return reply.status(304).send();
  return reply.send(bytes);
}

/** Another selection has another tag. */
function tagOfCar({ id, segments }: GatewayPath, { scope, bytes }: Asked & { form: 'car' }): string {
  const asked = JSON.stringify([segments, scope, bytes?.from, bytes?.to ?? '*']);
  return `"${id.text}.car.${createHash('sha256').update(asked).digest('hex').slice(0, 16)}"`;
}

/**
 * A CAR of what is kept here, sent as fast as the caller takes it. Where a block turns out to be missing or malformed once
 * the head is sent, the connection is broken off: a client must check a CAR anyway.
 * @param place given back when the CAR is sent
 */
export async function sendCar(
  ipfs: Pick<IpfsFiles, 'block'>,
  place: Disposable,
  path: GatewayPath,
  asked: Asked & { form: 'car' },
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const signal = closing(reply);
  const giveBack = () => place[Symbol.dispose]();
  try {
    const read: ReadBlock = (id) => ipfs.block(id, signal);
    const blocks = await blocksOfPath(path.id, path.segments, read, signal);
    const etag = tagOfCar(path, asked);
    const sent = { path, contentType: CAR_TYPE, etag, fileName: `${path.id.text}.car` };
    const isKnown = sendHead(sent, request, reply);
    if (isKnown || request.method === 'HEAD') {
      giveBack();
      return isKnown ? reply.status(304).send() : reply.send();
    }
    const root = blocks.at(-1)!.cid;
    return reply.send(streamOf(encodeCar([root], selectBlocks(blocks, asked, read)), giveBack));
  } catch (error) {
    giveBack();
    throw error;
  }
}

/** The CID that holds nothing: by it clients find out whether this is a gateway ("Dedicated Probe Paths"). */
export const PROBE = 'bafkqaaa';
export const probeId: BlockId = { text: PROBE, cid: CID.parse(PROBE), digest: '', isRaw: true };

export function sendProbe(probe: GatewayPath, asked: Asked, request: FastifyRequest, reply: FastifyReply) {
  if (asked.form === 'file') return reply.type('text/plain').header('cache-control', IMMUTABLE).send('');
  const [contentType, extension] = asked.form === 'raw' ? [RAW_TYPE, 'bin'] : [CAR_TYPE, 'car'];
  const sent = {
    path: probe,
    contentType,
    etag: `"${PROBE}.${extension}"`,
    fileName: `${PROBE}.${extension}`,
  };
  if (sendHead(sent, request, reply)) return reply.status(304).send();
  const body = asked.form === 'raw' ? Buffer.alloc(0) : encodeCarHeader([probe.id.cid]);
  return reply.send(Buffer.from(body));
}
