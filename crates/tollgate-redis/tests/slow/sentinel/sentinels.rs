//! Sentinels with authentication, and sentinels that fail.

use crate::kit::Version;
use crate::sentinel::until;
use crate::sentinel::watched::{Client, Watched, Way};

#[tokio::test]
async fn guarded_sentinels_are_asked_as_the_shipped_user_over_tls() {
    let watched = Watched::start(Version::default(), Way::Guarded).await;
    let client = Client::connect(&watched.settings()).await;
    watched.is_known_to(&client).await;
    assert_eq!(client.take().await, Ok(1));
    assert_eq!(watched.primary_of(&client), Some(0));
}

#[tokio::test]
async fn one_sentinel_that_answers_is_enough_to_begin() {
    let mut watched = Watched::start(Version::default(), Way::Open).await;
    let before = Client::connect(&watched.settings()).await;
    watched.is_known_to(&before).await;
    watched.sentinels[0].kill();
    watched.sentinels[1].freeze();
    let client = Client::connect(&watched.settings()).await;
    assert_eq!(watched.primary_of(&client), Some(0));
    assert_eq!(client.take().await, Ok(1));
    until(|| watched.primary_of(&before) == Some(0)).await;
    assert_eq!(before.take().await, Ok(2), "the others' silence disturbs nobody");
}
