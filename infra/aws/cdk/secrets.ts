import { RemovalPolicy } from 'aws-cdk-lib';
import { Secret } from 'aws-cdk-lib/aws-secretsmanager';
import type { Construct } from 'constructs';

const LENGTH = 40;

/**
 * The passwords of a first start and the data-protection token: made by the platform, kept when the stack is deleted, and
 * named in templates by reference only. The token seals the secrets of connectors, so losing it loses those.
 */
export function createSecrets(scope: Construct): { readonly admin: Secret; readonly ops: Secret; readonly token: Secret } {
  const secret = (id: string, description: string) => new Secret(scope, id, {
    description, removalPolicy: RemovalPolicy.RETAIN, generateSecretString: { passwordLength: LENGTH, excludePunctuation: true, includeSpace: false },
  });
  return {
    admin: secret('AdminPassword', 'Password with which the user admin of Skua is created'),
    ops: secret('OpsPassword', 'Password with which the user ops of Skua is created'),
    token: secret('DataProtectionToken', 'Secret under which Skua seals secrets of connectors'),
  };
}

/** A reference that the platform resolves when it deploys. */
export function reference(secret: Secret): string {
  return secret.secretValue.unsafeUnwrap();
}
