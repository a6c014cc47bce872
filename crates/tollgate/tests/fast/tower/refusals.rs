//! Tests of responses to refused requests with the settings of a policy.

use std::sync::Arc;

use http::StatusCode;
use tollgate::model::policy::{ResponseSettings, Rule, RuleMode};
use tollgate::model::refusal::{RefusalSettings, Template};

use crate::tower::world::{World, field, github, policy, rule, text, window};

const BROWSER: &str = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";

fn template(text: &str) -> Option<Template> {
    Some(Template::parse(text).unwrap())
}

/// Returns a service with a limit of one request. `settings` are the refusal settings of the limit,
/// the rule and the policy.
fn world(settings: [Option<RefusalSettings>; 3]) -> World {
    let [of_limit, of_rule, of_policy] = settings;
    let core = window("core", 1);
    let core = match of_limit {
        Some(refusal) => core.with_refusal(refusal),
        None => core,
    };
    let all = rule("all", "/**", &[0], RuleMode::Enforce);
    let all = Rule { refusal: of_rule.map(Arc::new), ..all };
    let answers = ResponseSettings { refusal: of_policy.map(Arc::new), ..github() };
    World::new(policy(vec![core], vec![all], answers))
}

#[tokio::test]
async fn the_refusal_of_a_limit_precedes_that_of_a_rule_and_of_the_policy() {
    let own = |text: &str| Some(RefusalSettings { text: template(text), ..Default::default() });
    let (limit, rule, policy) =
        (own("{{limit}} of the limit"), own("{{rule}} of the rule"), own("of the policy"));
    for (settings, body) in [
        ([limit, rule.clone(), policy.clone()], "core of the limit"),
        ([None, rule, policy.clone()], "all of the rule"),
        ([None, None, policy], "of the policy"),
    ] {
        let world = world(settings);
        assert_eq!(world.get("/").await.status(), StatusCode::OK);
        // If the policy has only one body, every client receives this body.
        let refused = world.get_accepting("/", Some(BROWSER)).await;
        assert_eq!(refused.status(), StatusCode::TOO_MANY_REQUESTS);
        assert_eq!(field(&refused, "content-type"), "text/plain; charset=utf-8");
        assert_eq!(field(&refused, "vary"), "");
        assert_eq!(field(&refused, "x-ratelimit-remaining"), "0");
        assert_eq!(text(refused).await, body);
    }
}

#[tokio::test]
async fn a_client_receives_the_body_that_it_accepts_with_the_fields_of_the_policy() {
    let settings = RefusalSettings {
        status: Some(403),
        headers: vec![("cache-control".into(), "no-store".into())],
        documentation: Some("https://example.com/limits?a=1&b=2".into()),
        json: template(
            "{\"quota\":{{quota}},\"left\":{{remaining}},\"wait\":{{retry_after}},\"status\":{{status}}}",
        ),
        html: template("<a href=\"{{documentation}}\">{{limit}}</a>"),
        text: None,
    };
    let world = world([None, Some(settings), None]);
    assert_eq!(world.get("/").await.status(), StatusCode::OK);
    let problem = "application/problem+json";
    for (accept, media_type) in [
        (None, "application/json"),
        (Some("*/*"), "application/json"),
        (Some(problem), "application/json; charset=utf-8"),
        (Some(BROWSER), "text/html; charset=utf-8"),
    ] {
        let refused = world.get_accepting("/", accept).await;
        assert_eq!(refused.status(), StatusCode::FORBIDDEN);
        assert_eq!(field(&refused, "content-type"), media_type, "{accept:?}");
        assert_eq!(field(&refused, "cache-control"), "no-store");
        let link = "<https://example.com/limits?a=1&b=2>; rel=\"help\"";
        assert_eq!(field(&refused, "link"), link);
        let body = text(refused).await;
        match media_type {
            "application/json" => {
                assert_eq!(body, "{\"quota\":1,\"left\":0,\"wait\":60,\"status\":403}");
            }
            "text/html; charset=utf-8" => {
                assert_eq!(body, "<a href=\"https://example.com/limits?a=1&amp;b=2\">core</a>");
            }
            _ => assert!(body.contains("violated-policies"), "{body}"),
        }
    }
}

/// A template of the policy receives no numbers of a limit that is hidden from clients.
#[tokio::test]
async fn a_hidden_limit_stays_hidden_in_a_template() {
    let text_of_policy = template("{{limit}} {{quota}} {{remaining}}");
    let settings = RefusalSettings { text: text_of_policy, ..Default::default() };
    let hidden = window("hidden", 1).with_visibility(tollgate::model::Visibility::Hidden);
    let all = rule("all", "/**", &[0], RuleMode::Enforce);
    let answers = ResponseSettings { refusal: Some(Arc::new(settings)), ..github() };
    let world = World::new(policy(vec![hidden], vec![all], answers));
    assert_eq!(world.get("/").await.status(), StatusCode::OK);
    let refused = world.get_accepting("/", Some("text/plain")).await;
    assert_eq!(text(refused).await, "hidden 0 0");
}
