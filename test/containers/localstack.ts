import { LocalstackContainer } from '@testcontainers/localstack';
import { getContainerRuntimeClient } from 'testcontainers';

/**
 * Servers in containers. This folder is a package of its own, which `npm run install:containers` installs;
 * `support/s3/containers.ts` looks whether it is there.
 */

export interface Started {
  readonly id: string;
  readonly endpoint: string;
  stop(): Promise<void>;
}

/** A LocalStack with S3 alone. Found again by its settings, so that all processes of a run share one. */
export async function startLocalstack(image: string): Promise<Started> {
  const container = await new LocalstackContainer(image).withEnvironment({ SERVICES: 's3' }).withReuse().start();
  return {
    id: container.getId(),
    endpoint: container.getConnectionUri(),
    stop: async () => {
      await container.stop();
    },
  };
}

/** Ends a container and removes what it has; one that is gone is no error. */
export async function removeContainer(id: string): Promise<void> {
  const { container } = await getContainerRuntimeClient();
  const found = container.getById(id);
  await container.stop(found, { timeout: 0 }).catch(() => {});
  await container.remove(found, { removeVolumes: true }).catch(() => {});
}
