import S3rver from '@20minutes/s3rver';

// An S3-compatible server on loopback; says its port, and ends with its parent.
const [directory, bucket] = process.argv.slice(2);
const server = new S3rver({
  address: '127.0.0.1',
  port: 0,
  directory: directory!,
  silent: true,
  configureBuckets: [{ name: bucket! }],
});
const { port } = await server.run();
process.once('disconnect', () => process.exit(0));
process.send!({ port });
