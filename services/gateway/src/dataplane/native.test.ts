import { NativeDataPlane } from './native/plane.ts';
import { builtForTests } from './native/testing/built.ts';
import { dataPlaneSuite } from './testing/suite.ts';

const path = await builtForTests();
const onTrouble = (details: object, message: string) => console.error(message, details);

dataPlaneSuite('native data plane', (options) => new NativeDataPlane({ ...options, path, onTrouble }));
