import { InstanceContent, InstanceControlContent, InstanceUpdateContent } from '../../content/instance.ts';
import { LIMITS } from '../../limits.ts';
import { Type } from '../../type.ts';
import { InstanceStatus, InstanceView, PaginationView } from '../../views.ts';
import { type Api, orNull } from '../operation.ts';
import { bodiesQuery } from './common/bodies.ts';
import { reads, takesSigned } from './common/declare.ts';
import { NextCursor, pageQuery } from './common/pagination.ts';
import { SUBMISSION_ANSWERS, submissionAnswers } from './common/submission.ts';

const CHANGE_ERRORS = ['INVALID_HASH', 'INSTANCE_NOT_FOUND', 'ID_MISMATCH', 'MESSAGE_FORGOTTEN'] as const;
const IdParams = Type.Object({
  instance_id: Type.String({ description: 'item hash of the INSTANCE message' }),
});

const ListedInstanceView = Type.Object(
  {
    ...InstanceView.properties,
    shared: Type.Optional(
      Type.Array(orNull(Type.String()), {
        description: `the signed messages that the instance follows from, as nodes pass them on; null where a text is gone, or has more than ${LIMITS.listedBodyBytes} bytes`,
      }),
    ),
  },
  { title: 'ListedInstance' },
);

const ProvableInstanceView = Type.Object(
  {
    ...ListedInstanceView.properties,
    sources: Type.Optional(
      Type.Array(Type.String(), {
        description:
          'item hashes of the messages in `shared`, in its order: what is too long for it is read by its hash',
      }),
    ),
  },
  { title: 'ProvableInstance' },
);

const InstanceListView = Type.Object(
  {
    instances: Type.Array(ListedInstanceView),
    pagination: PaginationView,
    next_cursor: NextCursor,
    cursor: Type.String({ description: 'events after it are not in the list yet' }),
  },
  { title: 'InstanceList' },
);

/** Instances: create, get, list, update, control (specification, "Instances"). */
export const INSTANCES_API = {
  createInstance: {
    method: 'POST',
    path: '/api/v0/instances',
    summary: 'Create an instance (signed INSTANCE)',
    ...takesSigned(
      { type: 'INSTANCE', content: InstanceContent },
      'INVALID_SSH_KEY',
      'UNKNOWN_IMAGE',
      'CREDIT_INSUFFICIENT',
      'MESSAGE_FORGOTTEN',
    ),
    answers: submissionAnswers('CreatedInstance', {
      instance_id: Type.String(),
      ipv6: Type.String({
        description: 'empty until a node is chosen; GET the instance for its phase and reason',
      }),
    }),
  },
  getInstance: {
    method: 'GET',
    path: '/api/v0/instances/:instance_id',
    summary: 'Get an instance',
    ...reads('INVALID_HASH', 'INSTANCE_NOT_FOUND'),
    params: IdParams,
    query: Type.Object({ bodies: bodiesQuery }, { additionalProperties: false }),
    answers: { 200: ProvableInstanceView },
  },
  listInstances: {
    method: 'GET',
    path: '/api/v0/instances',
    summary: 'List instances, newest first',
    ...reads('INVALID_ADDRESS', 'INVALID_HASH', 'INVALID_CURSOR', 'LIST_TOO_COSTLY'),
    query: Type.Object(
      {
        ...pageQuery,
        bodies: bodiesQuery,
        address: Type.Optional(Type.String({ description: 'owner' })),
        status: Type.Optional(
          Type.Union(InstanceStatus.anyOf, { description: 'only resources with this status' }),
        ),
        node_id: Type.Optional(Type.String({ description: 'the compute node that runs it' })),
      },
      { additionalProperties: false },
    ),
    answers: { 200: InstanceListView },
  },
  updateInstance: {
    method: 'PUT',
    path: '/api/v0/instances/:instance_id',
    summary: 'Change the name, description or firewall of an instance (signed INSTANCE_UPDATE)',
    ...takesSigned({ type: 'INSTANCE_UPDATE', content: InstanceUpdateContent }, ...CHANGE_ERRORS),
    params: IdParams,
    answers: SUBMISSION_ANSWERS,
  },
  controlInstance: {
    method: 'POST',
    path: '/api/v0/instances/:instance_id/control',
    summary: 'Start, stop or restart an instance (signed INSTANCE_CONTROL)',
    ...takesSigned(
      { type: 'INSTANCE_CONTROL', content: InstanceControlContent },
      ...CHANGE_ERRORS,
      'CREDIT_INSUFFICIENT',
    ),
    params: IdParams,
    answers: SUBMISSION_ANSWERS,
  },
} as const satisfies Api;
