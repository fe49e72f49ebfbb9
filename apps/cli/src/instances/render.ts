import { stripVTControlCharacters } from 'node:util';
import type { SubmittedMessage } from '@skerry/client/core-client';
import { hostnameOf, type InstanceView } from '@skerry/protocol/forms';
import type { Context } from '../context.ts';
import { findGatewayStatus, type HostAddresses, hostAddresses } from '../network/gateway.ts';
import { renderPorts } from '../options.ts';
import { plainText, renderAge, renderFields, renderTable, shorten } from '../output/text.ts';

const SHORT_ID_CHARS = 12;
const REASON_CHARS = 300;

/** An instance and where it is reached by name. */
export type InstanceReport = InstanceView & HostAddresses;

export async function reportOf(context: Context, instance: InstanceView): Promise<InstanceReport> {
  const gateway = await findGatewayStatus(() => context.findService('gateway'));
  return { ...instance, ...hostAddresses(hostnameOf(instance.instance_id), gateway) };
}

/** What became of the message that changed an instance, beside the instance, which has a reason of its own. */
export const messageFields = (answer: SubmittedMessage) => ({
  item_hash: answer.item_hash,
  ...(answer.status === 'pending'
    ? { message_status: 'pending' as const, message_reason: answer.reason }
    : { message_status: 'processed' as const }),
});

/** `preparing: building the image debian:12` */
export function renderPhase({ phase, reason }: Pick<InstanceView, 'phase' | 'reason'>): string {
  return reason === null ? phase : `${phase}: ${shorten(plainText(reason.message), REASON_CHARS)}`;
}

/** What one wants to know when it was just created. */
export function renderCreated(report: InstanceReport): string {
  return renderFields([
    ['instance', report.instance_id],
    ['name', plainText(report.name)],
    ['ipv6', report.ipv6 === '' ? 'none yet' : report.ipv6],
    ['host name', report.hostname],
    ['https', report.https_url],
    ['http', report.http_url],
    // "stopped" is what the network says of one that has not started yet, too.
    ['status', renderPhase(report)],
  ]);
}

export function renderInstance(report: InstanceReport, nowSeconds: number): string {
  return renderFields([
    ['instance', report.instance_id],
    ['name', plainText(report.name)],
    ['description', report.description === '' ? undefined : plainText(report.description)],
    ['owner', report.owner],
    ['status', renderPhase(report)],
    ['desired', report.desired],
    ['ipv6', report.ipv6 === '' ? 'none yet' : report.ipv6],
    ['host name', report.hostname],
    ['https', report.https_url],
    ['http', report.http_url],
    ['open ports', renderPorts(report.firewall)],
    ['PROXY protocol', report.firewall.proxyProtocol ? 'desired' : undefined],
    ['image', report.image],
    ['size', `${report.cpu} cpu, ${report.memory} MiB memory, ${report.disk} GiB disk`],
    ['node', report.node_id ?? 'none yet'],
    ['created', renderAge(nowSeconds - report.created_at)],
  ]);
}

export const shortId = (id: string) => id.slice(0, SHORT_ID_CHARS);

const HEADS = ['NAME', 'ID', 'PHASE', 'IPV6', 'HOST NAME', 'IMAGE', 'CREATED'];
const LEFT_OUT_IF_NARROW = new Set([HEADS.indexOf('IPV6'), HEADS.indexOf('IMAGE')]);

export function renderInstances(
  instances: readonly InstanceView[],
  nowSeconds: number,
  paintPhase: (phase: InstanceView['phase']) => string = (phase) => phase,
  width: number = Number.POSITIVE_INFINITY,
): string {
  const rows = instances.map((instance) => [
    plainText(instance.name),
    shortId(instance.instance_id),
    paintPhase(instance.phase),
    instance.ipv6 === '' ? '-' : instance.ipv6,
    hostnameOf(instance.instance_id),
    plainText(instance.image),
    renderAge(nowSeconds - instance.created_at),
  ]);
  const table = renderTable(HEADS, rows);
  if (table.split('\n').every((line) => stripVTControlCharacters(line).length <= width)) return table;
  // "skerry instance show" tells the rest.
  const narrow = (cells: readonly string[]) => cells.filter((_, column) => !LEFT_OUT_IF_NARROW.has(column));
  return renderTable(narrow(HEADS), rows.map(narrow), width);
}
