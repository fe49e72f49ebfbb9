import { HAPROXY_DIFFERENCES } from './haproxy/differences.ts';
import { HaproxyDataPlane } from './haproxy/plane.ts';
import { haproxyForTests } from './haproxy/testing/program.ts';
import { tlsSuite } from './testing/suite.ts';

const program = await haproxyForTests();
const onTrouble = (details: object, message: string) => console.error(message, details);

tlsSuite(
  'HAProxy data plane',
  (options) => new HaproxyDataPlane({ ...options, program, onTrouble }),
  HAPROXY_DIFFERENCES,
);
