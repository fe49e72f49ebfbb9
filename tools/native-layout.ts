import { QUIC_OUTCOMES, TLS_OUTCOMES } from '../services/gateway/src/dataplane/figures.ts';
import {
  ACCESS_RECORD,
  COMMANDS,
  type Fields,
  KIND_BYTES,
  LAYOUT_NUMBER,
  type Layout,
  LISTEN_FAILURE,
  LISTENING,
  QUIC_REFUSALS,
  REFUSED_PROTOCOLS,
  REFUSED_RECORD,
  REPORTS,
  ROUTE_ANSWER,
  ROUTE_FLAGS,
  SHARED_STATS,
  type Shape,
  TLS_REFUSALS,
} from '../services/gateway/src/dataplane/native/layout.ts';
import { STALL_RULE } from '../services/gateway/src/dataplane/stall-rule.ts';

const C_TYPES = { u8: 'uint8_t', u16: 'uint16_t', u32: 'uint32_t', i32: 'int32_t', u64: 'uint64_t' } as const;

const snake = (name: string) => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
const constant = (name: string) => snake(name).toUpperCase();

function fieldOf(name: string, shape: Shape): string {
  const [kind, suffix] = typeof shape === 'string' ? [shape, ''] : [shape[0], `[${shape[1]}]`];
  return `  ${C_TYPES[kind]} ${snake(name)}${suffix};`;
}

const bytesOf = (shape: Shape) => KIND_BYTES[typeof shape === 'string' ? shape : shape[0]];

/** Whether a compiler lays it out so by itself. */
function isAligned({ fields, sizeBytes, offsetOf }: Layout<Fields>): boolean {
  const all = Object.entries(fields);
  return (
    all.every(([name, shape]) => offsetOf(name) % bytesOf(shape) === 0) &&
    all.every(([, shape]) => sizeBytes % bytesOf(shape) === 0)
  );
}

/** With what makes the compiler check that it lies as the TypeScript side reads it. */
function structOf(name: string, layout: Layout<Fields>): string {
  const fields = Object.entries(layout.fields);
  const asserts = fields.map(
    ([field]) =>
      `_Static_assert(offsetof(struct ${name}, ${snake(field)}) == ${layout.offsetOf(field)}, "");`,
  );
  return [
    `struct ${name} {`,
    ...fields.map(([field, shape]) => fieldOf(field, shape)),
    isAligned(layout) ? '};' : '} __attribute__((packed));',
    `_Static_assert(sizeof(struct ${name}) == ${layout.sizeBytes}, "");`,
    ...asserts,
  ].join('\n');
}

function enumOf(name: string, values: Readonly<Record<string, string | number>>): string {
  const each = Object.entries(values).map(([key, value]) => {
    const text = typeof value === 'string' ? `'${value}'` : value;
    return `  ${constant(name)}_${constant(key)} = ${text},\n`;
  });
  return `enum ${name} {\n${each.join('')}};`;
}

/** native/layout.h of the gateway: what native/layout.ts says, in C. */
export const describeNativeLayout = () =>
  `/* Generated from src/dataplane/native/layout.ts by \`npm run generate\`: what passes between it and this program. */
#pragma once
#include <stddef.h>
#include <stdint.h>

/* Of all that follows. */
#define LAYOUT_NUMBER ${LAYOUT_NUMBER}u

/* What became of a connection. */
enum outcome {
${TLS_OUTCOMES.map((outcome) => `  ${constant(outcome)},\n`).join('')}  OUTCOMES,
};

/* What became of a QUIC connection, or of a datagram that belongs to none. */
enum quic_outcome {
${QUIC_OUTCOMES.map((outcome) => `  QUIC_${constant(outcome)},\n`).join('')}};

/* A bit for each outcome by which a client is refused. */
#define TLS_REFUSALS ${TLS_REFUSALS}u
#define QUIC_REFUSALS ${QUIC_REFUSALS}u

/* Which receivers are slow, and how much they may hold: src/dataplane/stall-rule.ts says more. */
${enumOf('stall_rule', STALL_RULE)}

${enumOf('refused_protocol', REFUSED_PROTOCOLS)}
enum { REFUSED_PROTOCOLS = ${Object.keys(REFUSED_PROTOCOLS).length} };
${enumOf('command', COMMANDS)}
${enumOf('report', REPORTS)}
${enumOf('route_flag', ROUTE_FLAGS)}

${structOf('shared_stats', SHARED_STATS)}

${structOf('access_record', ACCESS_RECORD)}

${structOf('refused_record', REFUSED_RECORD)}

${structOf('route_answer', ROUTE_ANSWER)}

${structOf('listening', LISTENING)}

${structOf('listen_failure', LISTEN_FAILURE)}
`;
