import {
  AMEND,
  METRICS_POST_TYPES,
  type PostContent,
  parseMetricsReport,
  parsePostContent,
  SCORING_CHANNEL,
  tagsOfPost,
  type VerifiedMessage,
} from '@skerry/protocol';
import { defineKind, type Own } from '../accepted.ts';
import { metricsEffect } from '../effects/metrics.ts';
import { amendEffect } from '../effects/posts.ts';
import { amendOf } from './amend.ts';
import { findNetworkPost, NETWORK_EFFECTS } from './network-posts.ts';

const EFFECTS = [amendEffect, metricsEffect, ...NETWORK_EFFECTS] as const;

const isMetrics = (type: string, channel: string | null | undefined) =>
  channel === SCORING_CHANNEL && (METRICS_POST_TYPES as readonly string[]).includes(type);

function ownOf(message: VerifiedMessage, content: PostContent): Own<(typeof EFFECTS)[number]> {
  if (content.type === AMEND) return amendOf(message, content);
  if (isMetrics(content.type, message.channel)) {
    const report = parseMetricsReport(content.content);
    return { subject: content.ref ?? null, changes: [metricsEffect.change(report)] };
  }
  const read = findNetworkPost(content.type);
  return read ? read(message, content.content) : { subject: content.ref ?? null };
}

/** POST: a typed note; some types mean something to the network itself. */
export const post = defineKind({
  read: parsePostContent,
  effects: EFFECTS,
  accept(message, content) {
    const { changes = [], ...own } = ownOf(message, content);
    const original = content.type === AMEND ? content.ref! : message.itemHash;
    return {
      contentType: content.type,
      tags: tagsOfPost(content),
      ...own,
      changes: [...changes, amendEffect.change({ original })],
    };
  },
});
