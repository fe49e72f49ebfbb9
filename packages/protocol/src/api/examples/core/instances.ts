import type { Examples } from '../../operation.ts';
import { INSTANCE, PROGRAM, RENAMING, RESTART } from '../signed.ts';
import { COMPUTE_NODE, IPV6, OWNER, PAGINATION, TIME } from '../values.ts';

const params = { instance_id: INSTANCE.itemHash };

const RUNNING = {
  instance_id: INSTANCE.itemHash,
  owner: OWNER,
  description: '',
  ...INSTANCE.body.message.content,
  ipv6: IPV6.guest,
  status: 'running',
  created_at: TIME,
  updated_at: TIME,
  effective_at: TIME,
  placed: true,
  desired: 'running',
  restart_id: null,
  node_id: COMPUTE_NODE.id,
  node_address: COMPUTE_NODE.address,
  phase: 'running',
  reason: null,
};

/** The messages that a program is called with. */
const SUBSCRIPTION = [{ sender: OWNER, channel: 'notes' }];

/** Instances and programs. */
export const INSTANCE_EXAMPLES: Examples = {
  createInstance: {
    body: INSTANCE.body,
    answer: {
      item_hash: INSTANCE.itemHash,
      status: 'success',
      instance_id: INSTANCE.itemHash,
      ipv6: IPV6.guest,
    },
  },
  getInstance: { params, answer: RUNNING },
  listInstances: {
    query: { address: OWNER },
    answer: { instances: [RUNNING], pagination: PAGINATION, next_cursor: null, cursor: '1204' },
  },
  updateInstance: {
    params,
    body: RENAMING.body,
    answer: { item_hash: RENAMING.itemHash, status: 'success' },
  },
  controlInstance: {
    params,
    body: RESTART.body,
    answer: { item_hash: RESTART.itemHash, status: 'success' },
  },
  createProgram: { body: PROGRAM.body, answer: { item_hash: PROGRAM.itemHash, status: 'success' } },
  listProgramsOnMessage: {
    answer: [{ item_hash: PROGRAM.itemHash, content: { on: { message: SUBSCRIPTION } } }],
  },
  listAssignedPrograms: {
    params: { node_id: COMPUTE_NODE.id },
    answer: {
      programs: [{ item_hash: PROGRAM.itemHash, persistent: false, message: SUBSCRIPTION }],
      cursor: '1204',
    },
  },
  listProgramRunners: {
    params: { program_hash: PROGRAM.itemHash },
    answer: {
      runners: [{ node_id: COMPUTE_NODE.id, node_address: COMPUTE_NODE.address, url: COMPUTE_NODE.url }],
    },
  },
};
