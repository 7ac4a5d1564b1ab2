class ApplicationController < ActionController::API
  ALGORITHM = "HS256".freeze

  wrap_parameters false

  rescue_from ActiveRecord::RecordNotFound do
    render json: { error: "Not found" }, status: :not_found
  end

  private

  # The user of the token, or nil where it is missing, invalid or expired.
  def current_user
    @current_user ||= User.find_by(id: token_payload["user_id"])
  end

  def require_role(role)
    if current_user.nil?
      render json: { error: "Unauthorized" }, status: :unauthorized
    elsif current_user.role != role
      render json: { error: "Forbidden" }, status: :forbidden
    end
  end

  def render_invalid(errors)
    render json: { errors: errors }, status: :unprocessable_entity
  end

  def token_payload
    token = request.headers["Authorization"].to_s[/\ABearer (.+)\z/, 1]
    JWT.decode(token, Rails.application.secret_key_base, true, algorithm: ALGORITHM).first
  rescue JWT::DecodeError
    {}
  end
end
