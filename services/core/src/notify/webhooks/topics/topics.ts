import { instanceStatus } from './instance-status.ts';
import { messageConfirmed } from './message-confirmed.ts';
import { messageNew } from './message-new.ts';
import { programExecuted } from './program-executed.ts';
import type { LoggedEvent, Topic } from './topic.ts';

const TOPICS: readonly Topic[] = [messageNew, messageConfirmed, programExecuted, instanceStatus];
const BY_KIND = new Map(TOPICS.map((topic) => [topic.kind, topic]));

export const findTopic = (kind: string): Topic | undefined => BY_KIND.get(kind);

/** The body of a delivery (Standard Webhooks, "Payload structure"); the same at every attempt. */
export function renderBody(event: LoggedEvent): string | undefined {
  const topic = BY_KIND.get(event.kind);
  if (!topic) return undefined;
  const data = topic.tell ? topic.tell(event) : event.data;
  return JSON.stringify({
    type: topic.name,
    timestamp: new Date(event.timeMs).toISOString(),
    data: { ...data, cursor: String(event.seq) },
  });
}
