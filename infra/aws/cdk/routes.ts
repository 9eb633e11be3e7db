import { CfnOutput } from 'aws-cdk-lib';
import { HttpApi, HttpMethod } from 'aws-cdk-lib/aws-apigatewayv2';
import { HttpLambdaIntegration } from 'aws-cdk-lib/aws-apigatewayv2-integrations';
import { FunctionUrlAuthType } from 'aws-cdk-lib/aws-lambda';
import type { Function as LambdaFunction } from 'aws-cdk-lib/aws-lambda';
import type { Construct } from 'constructs';
import type { Functions } from './functions.ts';

/** Beginnings of the paths that administrators use. */
const ADMIN_PATHS = ['admin', 'users', 'connectors', 'auto-scavenge'];

/**
 * Two ways in. One address for everything, as of a node: the gateway, which decodes paths, so that names with an escaped `/`,
 * `?` or `%` don't come through. And each function's own address, which leaves paths alone and costs nothing a
 * request. Who calls is checked by the functions themselves, as on a node.
 */
export function createRoutes(scope: Construct, { webhook, admin, streams }: Functions): void {
  const api = new HttpApi(scope, 'Api', { description: 'Skua', defaultIntegration: new HttpLambdaIntegration('StreamsIntegration', streams) });
  const adminIntegration = new HttpLambdaIntegration('AdminIntegration', admin);
  for (const name of ADMIN_PATHS) {
    for (const path of [`/${name}`, `/${name}/{proxy+}`]) api.addRoutes({ path, methods: [HttpMethod.ANY], integration: adminIntegration });
  }
  api.addRoutes({ path: '/webhook/{proxy+}', methods: [HttpMethod.ANY], integration: new HttpLambdaIntegration('WebhookIntegration', webhook) });
  output(scope, 'ApiUrl', api.apiEndpoint, 'One address for everything');
  for (const [id, each, what] of [['Streams', streams, 'streams'], ['Admin', admin, 'administration'], ['Webhook', webhook, 'webhooks']] as const) {
    output(scope, `${id}Url`, urlOf(each), `The function for ${what} alone`);
  }
}

function urlOf(to: LambdaFunction): string {
  return to.addFunctionUrl({ authType: FunctionUrlAuthType.NONE }).url;
}

function output(scope: Construct, id: string, value: string, description: string): void {
  new CfnOutput(scope, id, { value, description });
}
