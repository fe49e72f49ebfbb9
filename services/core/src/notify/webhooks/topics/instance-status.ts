import { type Topic, textOf } from './topic.ts';

const TOLD = ['phase', 'status'] as const;

/** The phase or the status of an instance changed; of the other changes of an instance nothing is told. */
export const instanceStatus: Topic = {
  name: 'instance.status',
  kind: 'instance',
  read: ({ data, before }) =>
    TOLD.some((name) => data[name] !== before?.[name]) ? { sender: textOf(data.owner) } : undefined,
  tell: ({ data, before }) => {
    const { instance_id, owner, name, status, phase, reason, ipv6, node_id, updated_at } = data;
    const previous_phase = before?.phase ?? null;
    return { instance_id, owner, name, status, phase, previous_phase, reason, ipv6, node_id, updated_at };
  },
};
